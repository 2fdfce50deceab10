"""The one place that knows how entries, events and views turn into each other (decision 1)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from streaming.errors import ProtocolError
from streaming.events import (
    BlockView,
    Body,
    CancelView,
    Event,
    Json,
    ReasoningDelta,
    Start,
    TextDelta,
    TurnView,
    body_from_dict,
    body_to_dict,
    dumps,
    view_from_dict,
    view_to_dict,
)
from streaming.frames import cursor_key
from streaming.lifecycle import TERMINAL
from streaming.log.ports import CancelRequest, Entry, Kind, Logged, Ref
from streaming.snapshot import Block, Snapshot, fold, requested

# Well below the time a log stays, and well above any step of a clock.
QUIET_MS = 5 * 60 * 1000

_DELTAS: dict[Kind, type[TextDelta | ReasoningDelta]] = {Kind.TEXT: TextDelta, Kind.REASONING: ReasoningDelta}


def entry_of(ref: Ref, attempt: int, seq: int, body: Body) -> Entry:
    """Encode an event for the log. A start's payload carries the UUID for readers of the number."""
    if isinstance(body, TextDelta):
        return Entry(ref.number, attempt, seq, Kind.TEXT, body.text)
    if isinstance(body, ReasoningDelta):
        return Entry(ref.number, attempt, seq, Kind.REASONING, body.text)
    if isinstance(body, Start):
        fields = {"gen": ref.gen, "type": body.type, **body_to_dict(body)}
        return Entry(ref.number, attempt, seq, Kind.START, dumps(fields))
    return Entry(ref.number, attempt, seq, Kind.FACT, dumps({"type": body.type, **body_to_dict(body)}))


def entry_of_view(ref: Ref, attempt: int, view: BlockView) -> Entry:
    return Entry(ref.number, attempt, view.after_seq, Kind.BLOCK, dumps(view_to_dict(view)), view.index)


def at_of(cursor: str) -> int:
    """Give the time an entry was written: the millisecond part of its id."""
    return int(cursor.partition("-")[0])


def position_of(newest: str | None, now: int) -> str:
    """
    Give the cursor after which all that is written from `now` on will come.

    An entry's id starts with the time it was written. So an empty or old log is at "just now": a
    reader's cursor then never grows old beside a log that was quiet for long. A recent id is taken
    as it is, which holds even if the clock steps back.
    """
    if newest is not None and at_of(newest) > now - QUIET_MS:
        return newest
    return f"{now - 1}-0"


def is_to_come(cursor: str, position: str, now: int) -> bool:
    """
    Say whether a log at `position`, at `now` by its clock, cannot have given this cursor yet.

    The clock may have stepped back since its newest entry was written.
    """
    return cursor_key(cursor) > cursor_key(position) and at_of(cursor) > now


def event_of(gen: str, logged: Logged) -> Event:
    """Decode an entry that is an event."""
    entry = logged.entry
    return Event(gen, entry.attempt, entry.seq, at_of(logged.cursor), body_of(entry))


def body_of(entry: Entry) -> Body:
    delta = _DELTAS.get(entry.kind)
    if delta is not None:
        return delta(entry.payload)
    data = json.loads(entry.payload)
    data.pop("gen", None)
    return body_from_dict(data.pop("type"), data)


def wire(gen: str, logged: Logged) -> str:
    """Give an entry's JSON as frames carry it."""
    return json_of(gen, logged.entry, at_of(logged.cursor))


def json_of(gen: str, entry: Entry, at: int) -> str:
    """
    Give an entry's JSON, as of the moment when it was written.

    Facts and views are spliced as text, never decoded: this runs once for each event and process.
    """
    if entry.kind is Kind.BLOCK or entry.kind is Kind.NOTICE:
        return entry.payload
    head = f'{{"v":1,"attempt":{entry.attempt},"seq":{entry.seq},"at":{at},'
    if entry.kind is Kind.START:
        return head + entry.payload[1:]
    head += f'"gen":"{gen}",'
    if entry.kind is Kind.TEXT:
        return f'{head}"type":"text_delta","text":{dumps(entry.payload)}}}'
    if entry.kind is Kind.REASONING:
        return f'{head}"type":"reasoning_delta","text":{dumps(entry.payload)}}}'
    return head + entry.payload[1:]


@dataclass(frozen=True, slots=True)
class Stored:
    """What a log keeps of one generation beside its entries."""

    attempt: int
    seq: int
    text: str
    reasoning: str
    facts: tuple[str, ...]  # the JSON of every event that is no delta
    blocks: Mapping[int, str]  # index → view JSON
    newest_block: int | None
    cancel: CancelRequest | None = None


def snapshot_of(ref: Ref, stored: Stored) -> Snapshot:
    """Fold what the log keeps. Text and reasoning were kept joined, so cost grows with bytes only."""
    snapshot = Snapshot(gen=ref.gen)
    for seq, fact in enumerate(stored.facts, start=1):
        data = json.loads(fact)
        data.pop("gen", None)
        body = body_from_dict(data.pop("type"), data)
        snapshot = fold(snapshot, Event(ref.gen, stored.attempt, seq, 0, body))
    shown, rendered_seq = _rendered(stored)
    whole = replace(
        snapshot,
        seq=stored.seq,
        attempt=stored.attempt,
        text=stored.text,
        reasoning=stored.reasoning,
        blocks=tuple(_blocks(stored.blocks)),
        shown=shown,
        rendered_seq=rendered_seq,
    )
    if stored.cancel is None or whole.state in TERMINAL:
        return whole
    return requested(whole, stored.cancel.at, stored.cancel.by)


def _rendered(stored: Stored) -> tuple[int, int]:
    if stored.newest_block is None:
        return 0, 0
    view = _block_view(stored.blocks[stored.newest_block])
    return view.length, view.after_seq


def _blocks(blocks: Mapping[int, str]) -> Iterator[Block]:
    for index in range(max(blocks, default=-1) + 1):
        view = _block_view(blocks[index]) if index in blocks else None
        yield Block(view.html, view.sealed) if view else Block("", sealed=False)


def _block_view(payload: str) -> BlockView:
    view = view_from_dict(json.loads(payload))
    if not isinstance(view, BlockView):
        raise ProtocolError(f"expected a block view, got {view.type}")
    return view


def turn_notice(turn: Mapping[str, Json]) -> str:
    """Encode the notice that a turn was added, or has one more generation."""
    return dumps(view_to_dict(TurnView(turn)))


def cancel_notice(gen: str, request: CancelRequest) -> str:
    """Encode the notice that a generation was asked to stop."""
    return dumps(view_to_dict(CancelView(gen, request.at, request.by)))
