"""Evidence of a generation that nobody hurt, to be changed by tests of the checkers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from streaming.events import Body, Done, Event, Start, TextDelta, dumps, event_to_dict
from streaming.lifecycle import State
from streaming.log.codec import entry_of, event_of
from streaming.log.ports import Logged, LogSnapshot, Ref
from streaming.snapshot import Snapshot, fold
from streaming.upstream.script import pieces
from tests.torture.evidence import Archive, Call, Evidence, Row
from tests.torture.page import Seen
from tests.torture.person import Asked
from tests.torture.scripts import ALL

ASKED = Asked("6f0b5d0e-4b0e-4d1c-9b59-0c1b8f4f2a11", 1, "conversation", "count-slow", "p1")
SCRIPT = ALL[ASKED.model]
TEXT = SCRIPT.text(ASKED.prompt)
REF = Ref(ASKED.conversation, ASKED.number, ASKED.gen)


def done(text: str) -> Done:
    return Done("stop", hashlib.sha256(text.encode()).hexdigest(), len(text))


def logged(bodies: Sequence[Body], attempt: int = 1) -> tuple[Logged, ...]:
    """Put events into a log, the first at the cursor 1000-0, each a millisecond later."""
    return tuple(
        Logged(f"{999 + seq}-0", entry_of(REF, attempt, seq, body)) for seq, body in zip(count(1), bodies, strict=False)
    )


def archived(entries: Sequence[Logged]) -> Archive:
    events = tuple(event_of(ASKED.gen, one) for one in entries)
    lines = "\n".join(dumps(event_to_dict(event)) for event in events)
    return Archive(events, lines, len(events), hashlib.sha256(lines.encode()).hexdigest())


def folded(events: Sequence[Event]) -> Snapshot:
    snapshot = Snapshot(ASKED.gen)
    for event in events:
        snapshot = fold(snapshot, event)
    return snapshot


def whole() -> Evidence:
    """A whole answer, watched by one page."""
    bodies: list[Body] = [Start("count-slow", "pane"), *map(TextDelta, pieces(TEXT)), done(TEXT)]
    entries = logged(bodies)
    archive = archived(entries)
    end = folded(archive.events)
    half = len(entries) // 2
    sample = LogSnapshot(entries[half].cursor, {1: folded(archive.events[: half + 1])})
    row = Row(State.COMPLETED, 1, end.seq, TEXT, len(TEXT), hashlib.sha256(TEXT.encode()).hexdigest(), "", None)
    page = Seen("page", replace(end, shown=len(TEXT), rendered_seq=end.seq), TEXT, State.COMPLETED)
    call = Call("finished", 2 + len(pieces(TEXT)), 0.0, 5_000.0, 1_000.0)
    return Evidence(ASKED, row, archive, entries, end, (sample,), (call,), (page,))
