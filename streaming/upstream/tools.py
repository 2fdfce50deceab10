"""Tool calls out of pieces, whatever a service does with ids and indexes.

A call is found by its id, then by its index, then as the last one. Id and name are set once: some
services repeat them with each piece, some send them empty. Ids are compared as they came, and told as valid
text, so that two calls stay two. A call is complete when the upstream has ended its answer, never because
its arguments happen to parse: only then is it known whether a limit cut it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, Never

from streaming.upstream.ports import ToolChunk, ToolCompleteChunk
from streaming.upstream.unicode import Surrogates, valid

# Every piece of a call is told with its id. A longer one would cost more than what it names.
LONGEST_ID: Final = 200


@dataclass(slots=True)
class ToolCall:
    """A call under way."""

    call: str  # What our events call it: the upstream's id, or one of our own.
    id: str | None
    index: int | None
    name: str | None = None
    pieces: list[str] = field(default_factory=list)
    sent: int = 0  # How many pieces were given out; none before the name is known.
    surrogates: Surrogates = field(default_factory=Surrogates)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)


class ToolCalls:
    """The tool calls of one response."""

    def __init__(self, *, repeats_whole_calls: bool = False) -> None:
        self._repeats_whole_calls = repeats_whole_calls
        self._calls: list[ToolCall] = []
        self.completed = False  # Whether any call was completed.

    def add(self, *, id: str | None, index: int | None, name: str | None, arguments: Any) -> ToolChunk | None:  # noqa: A002
        """Take one piece and give what may be shown of it."""
        name = valid(name) if name else None
        call = self._find(id or None, index, name)
        call.name = call.name or name
        call.id = call.id or id or None
        piece = call.surrogates.feed(as_text(arguments))
        if piece and not (self._repeats_whole_calls and piece == call.arguments and is_object(piece)):
            call.pieces.append(piece)
        return self._unsent(call)

    def close_all(self, *, cut: bool) -> list[ToolCompleteChunk]:
        """The upstream ended. `cut`: by its length limit, so that missing arguments do not mean none."""
        closed = (self._close(call, cut=cut) for call in self._calls)
        return [chunk for chunk in closed if chunk]

    def _find(self, id: str | None, index: int | None, name: str | None) -> ToolCall:  # noqa: A002
        if id is not None:
            return self._by_id(id, index, name) or self._new(id, index)
        if index is not None:
            at_index = self._at(index)
            if at_index:
                return at_index
        if name is not None or not self._calls:
            return self._new(None, index)
        return self._calls[-1]

    def _by_id(self, id: str, index: int | None, name: str | None) -> ToolCall | None:  # noqa: A002
        for call in reversed(self._calls):
            # One service numbers every call "0"; a different name at a different index is another call.
            other = index != call.index and name is not None and name != call.name
            if call.id == id and not other:
                return call
        unnamed = self._at(index) if index is not None else None
        # The id of a call that began without one.
        return unnamed if unnamed and unnamed.id is None and (name is None or unnamed.name is None) else None

    def _at(self, index: int) -> ToolCall | None:
        return next((call for call in reversed(self._calls) if call.index == index), None)

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


def as_text(arguments: Any) -> str:
    """Arguments come as text, as nothing, or as a value that is serialised once."""
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def is_object(arguments: str) -> bool:
    """Say whether these are whole: a JSON object by the letter, so without NaN."""
    try:
        return isinstance(json.loads(arguments, parse_constant=_refuse), dict)
    except (ValueError, RecursionError):
        return False


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is no JSON")
