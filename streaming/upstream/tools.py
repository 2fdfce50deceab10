"""Tool calls out of pieces, whatever a service does with ids and indexes.

A piece belongs to the call of its id, else to the newest one at its index, else to the last one, if only that
can be meant. Id and name are set once: some services repeat them with each piece, some send them empty, some make
a new id for each piece. Ids are compared as they came, and told as valid text, so that two calls stay two.

A call is complete when the upstream has ended its answer, never because its arguments happen to parse: only then
is it known whether a limit cut it. A call that looks right and is not would be run. So none is completed while
arguments belong to no named call, and none without arguments while those of another are not whole, or may be its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, Never

from streaming.upstream.faults import fault
from streaming.upstream.ports import ToolChunk, ToolCompleteChunk
from streaming.upstream.unicode import Surrogates, valid

# Every piece of a call is told with its id. A longer one would cost more than what it names.
LONGEST_ID: Final = 200
# What services call the arguments of a call. Taken for none, they would make a call that was not meant.
ARGUMENTS: Final = ("arguments", "input", "args", "parameters", "partial_json")


@dataclass(slots=True)
class ToolCall:
    """A call under way."""

    call: str  # What our events call it: the upstream's id, or one of our own.
    id: str | None
    index: int | None
    name: str | None = None
    named_alone: bool = False  # The name came without arguments, as a piece of a name would.
    pieces: list[str] = field(default_factory=list)
    sent: int = 0  # How many pieces were given out; none before the name is known.
    surrogates: Surrogates = field(default_factory=Surrogates)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    def goes_on_with(self, id: str | None, name: str | None) -> bool:  # noqa: A002
        """Say whether a piece at this call's index belongs to it; a known id has been looked for before."""
        if name is None:
            return True
        if self.name is None:
            return None in (id, self.id) or not self.pieces
        return name == self.name and None in (id, self.id)


class Alike:
    """Calls by all that tells two calls apart, so that one is held against all of them at once."""

    def __init__(self) -> None:
        self._named: dict[str | None, tuple[set[str | None], set[int | None]]] = {}  # Ids and indexes, by name.
        self._at: dict[int, dict[str | None, set[str | None]]] = {}  # Names, by index and id.

    def add(self, call: ToolCall) -> None:
        ids, indexes = self._named.setdefault(call.name, (set(), set()))
        ids.add(call.id)
        indexes.add(call.index)
        if call.index is not None:
            self._at.setdefault(call.index, {}).setdefault(call.id, set()).add(call.name)

    def has_part_of(self, call: ToolCall) -> bool:
        """Say whether one of them may be the same call: nothing that both have tells them apart."""
        return self._has_same_name(call) or self.has_other_name_at(call)

    def has_other_name_at(self, call: ToolCall) -> bool:
        """Say whether one has another name at the same index, and no other id."""
        at = self._at.get(call.index, {}) if call.index is not None else {}
        names = at.values() if call.id is None else (at.get(call.id, ()), at.get(None, ()))
        return any(name != call.name for some in names for name in some)

    def _has_same_name(self, call: ToolCall) -> bool:
        """Say whether one has this name, and not both another id and another index."""
        ids, indexes = self._named.get(call.name, ((), ()))
        by_id = bool(ids) and (call.id is None or None in ids or call.id in ids)
        by_index = bool(indexes) and (call.index is None or None in indexes or call.index in indexes)
        return by_id or by_index


class ToolCalls:
    """
    The tool calls of one response.

    `drifts`: where services count the pieces of a call, an index that is new says nothing.
    """

    def __init__(self, *, repeats_whole_calls: bool = False, drifts: bool = False) -> None:
        self._repeats_whole_calls = repeats_whole_calls
        self._drifts = drifts
        self._calls: list[ToolCall] = []
        self.completed = False  # Whether any call was completed.

    @property
    def begun(self) -> bool:
        return bool(self._calls)

    @property
    def ownerless(self) -> bool:
        """Arguments came that belong to no call with a name."""
        return any(call.name is None and call.arguments.strip() for call in self._calls)

    def add(self, *, id: str | None, index: Any, name: str | None, arguments: Any) -> ToolChunk | None:  # noqa: A002
        """Take one piece and give what may be shown of it."""
        name = valid(name) if name else None
        call = self._call(id or None, as_index(index), name)
        call.id = call.id or id or None
        return self._take(call, name, as_text(arguments))

    def reconcile(self, whole: ToolCalls) -> Iterator[ToolChunk]:
        """
        Take the calls of an object that repeats the answer, and give what did not come before.

        Raises:
            UpstreamError: hole_in_answer, where they contradict what came.
        """
        for place, theirs in enumerate(whole._calls):
            ours = self._same(theirs, place) or self._new(theirs.id, theirs.index)
            chunk = self._take(ours, theirs.name, _missing(ours, theirs))
            if chunk:
                yield chunk

    def close_all(self, *, cut: bool) -> list[ToolCompleteChunk]:
        """The upstream ended. `cut`: not as the model meant it to, so that missing arguments do not mean none."""
        cut = cut or any(call.pieces and not is_object(call.arguments) for call in self._calls)
        in_doubt, half_named = self._in_doubt(), self._half_named()
        closed = [
            self._close(call, cut=cut or place in in_doubt)
            for place, call in enumerate(self._calls)
            if place not in half_named
        ]
        return [chunk for chunk in closed if chunk]

    def _call(self, id: str | None, index: int | None, name: str | None) -> ToolCall:  # noqa: A002
        named = self._by_id(id, index, name) if id is not None else None
        if named:
            return named
        there = self._at(index) if index is not None else None
        if there and there.goes_on_with(id, name):
            return there
        if id is None and name is None and (index is None or self._drifts) and self._last_is_meant():
            return self._calls[-1]
        return self._new(id, index)

    def _take(self, call: ToolCall, name: str | None, arguments: str) -> ToolChunk | None:
        if call.name is None and name:
            call.name, call.named_alone = name, not arguments
        piece = call.surrogates.feed(arguments)
        if piece and not (self._repeats_whole_calls and piece == call.arguments and is_object(piece)):
            call.pieces.append(piece)
        return self._unsent(call)

    def _by_id(self, id: str, index: int | None, name: str | None) -> ToolCall | None:  # noqa: A002
        """One service numbers every call "0": then the name tells them apart, and later the index."""
        calls = [c for c in reversed(self._calls) if c.id == id and (None in (name, c.name) or name == c.name)]
        return next((call for call in calls if call.index == index), calls[0] if calls else None)

    def _at(self, index: int) -> ToolCall | None:
        return next((call for call in reversed(self._calls) if call.index == index), None)

    def _last_is_meant(self) -> bool:
        """A piece that says nothing of its call may belong to each that still has no arguments."""
        return bool(self._calls) and all(call.pieces for call in self._calls[:-1])

    def _new(self, id: str | None, index: int | None) -> ToolCall:  # noqa: A002
        call = ToolCall(self._untaken(valid(str(id or ""))), id, index)
        self._calls.append(call)
        return call

    def _untaken(self, id: str) -> str:  # noqa: A002
        """Give the id if it can be ours too, else one that begins with it."""
        taken = {call.call for call in self._calls}
        if not 0 < len(id) <= LONGEST_ID:
            id = "call"  # noqa: A001
        elif id not in taken:
            return id
        return next(ours for n in count(len(self._calls) + 1) if (ours := f"{id}_{n}") not in taken)

    def _same(self, theirs: ToolCall, place: int) -> ToolCall | None:
        by_id = next((call for call in self._calls if theirs.id is not None and call.id == theirs.id), None)
        return by_id or (self._calls[place] if place < len(self._calls) else None)

    def _in_doubt(self) -> set[int]:
        """Give the places of calls of which a later one may be the rest."""
        found, later = set(), Alike()
        for place in reversed(range(len(self._calls))):
            if later.has_part_of(self._calls[place]):
                found.add(place)
            later.add(self._calls[place])
        return found

    def _half_named(self) -> set[int]:
        """Give the places of calls whose name may have come in two pieces: half of one is the name of another tool."""
        found, before = set(), Alike()
        for place, call in enumerate(self._calls):
            if call.named_alone and before.has_other_name_at(call):
                found.add(place)
            if not call.pieces:
                before.add(call)
        return found

    def _unsent(self, call: ToolCall) -> ToolChunk | None:
        if call.name is None:
            return None
        first, call.sent, pieces = call.sent == 0, len(call.pieces) + 1, call.pieces[max(call.sent - 1, 0) :]
        if not first and not pieces:
            return None
        return ToolChunk(call.call, "".join(pieces), call.name if first else None)

    def _close(self, call: ToolCall, *, cut: bool) -> ToolCompleteChunk | None:
        tail = call.surrogates.finish()
        arguments = call.arguments + tail
        if not arguments.strip() and not cut:
            arguments = "{}"
        if call.name is None or not is_object(arguments):
            return None
        self.completed = True
        return ToolCompleteChunk(call.call, call.name, arguments)


def name_and_arguments(call: dict[str, Any]) -> tuple[Any, Any]:
    """Read a call or a piece of one, whatever it calls its arguments, inside its wrapper and beside it."""
    inner = call.get("function") or call.get("custom") or {}
    holders = ({"name": inner} if isinstance(inner, str) else inner, call)
    arguments = (holder[name] for holder in holders for name in ARGUMENTS if holder.get(name))
    return next((holder["name"] for holder in holders if holder.get("name")), None), next(arguments, None)


def as_index(index: Any) -> int | None:
    """Read an index; some services write it as text."""
    if isinstance(index, str) and index.isdecimal():
        return int(index)
    return index if isinstance(index, int) else None


def as_text(arguments: Any) -> str:
    """Arguments come as text, as nothing, or as a value that is serialised once; an empty one has yet to be filled."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False) if arguments else ""


def is_object(arguments: str) -> bool:
    """Say whether these are whole: a JSON object by the letter, so without NaN."""
    try:
        return isinstance(json.loads(arguments, parse_constant=_refuse), dict)
    except (ValueError, RecursionError):
        return False


def _missing(ours: ToolCall, theirs: ToolCall) -> str:
    """Give what is missing of a call's arguments."""
    came, whole = ours.arguments, theirs.arguments
    if None in (ours.name, theirs.name) or ours.name == theirs.name:
        if whole.startswith(came):
            return whole[len(came) :]
        if not whole or (is_object(came) and is_object(whole) and json.loads(came) == json.loads(whole)):
            return ""
    raise fault("hole_in_answer", detail="a tool call is not the one that came before")


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is no JSON")
