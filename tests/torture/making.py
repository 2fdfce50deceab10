"""Evidence of a generation that nobody hurt, to be changed by tests of the checkers."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from streaming.events import Body, Done, Error, Event, Start, TextDelta, dumps, event_to_dict
from streaming.lifecycle import State
from streaming.log.codec import entry_of, event_of
from streaming.log.ports import Lease, Logged, LogSnapshot, Ref
from streaming.markdown import render
from streaming.snapshot import Snapshot, fold
from streaming.upstream.script import pieces
from tests.torture.account import Call
from tests.torture.evidence import Archive, Evidence, Loss, Lost, Row
from tests.torture.hurts import How, Hurt, Hurts, Place, to_monotonic
from tests.torture.invariants import broken
from tests.torture.page import Seen
from tests.torture.person import Asked, Stop
from tests.torture.scripts import ALL
from tests.torture.site import Way

# Moments of the story: epoch ms on one side, the monotonic clock's ms on the other.
QUEUED_AT = time.time() * 1000 - 60_000
OPENED_AT, ENDED_AT = QUEUED_AT + 100, QUEUED_AT + 8_000
OPENED, ENDED = to_monotonic(OPENED_AT), to_monotonic(ENDED_AT)
ASKED = Asked("6f0b5d0e-4b0e-4d1c-9b59-0c1b8f4f2a11", 1, "conversation", "count-slow", "p1", to_monotonic(QUEUED_AT))
SCRIPT = ALL[ASKED.model]
CALL = Call(7, ASKED.model, (ASKED.prompt,), Way(0, is_safe=False), "finished", 0, OPENED, ENDED, ENDED_AT)
TEXT = SCRIPT.text(ASKED.prompt, CALL.n)
REF = Ref(ASKED.conversation, ASKED.number, ASKED.gen)
TIMINGS = {"ended_at": int(ENDED_AT)}
START = Start("count-slow", "pane")


def done(text: str) -> Done:
    return Done("stop", hashlib.sha256(text.encode()).hexdigest(), len(text), TIMINGS)


def logged(bodies: Sequence[Body], attempt: int = 1) -> tuple[Logged, ...]:
    """Put events into a log, each a millisecond after the one before."""
    return tuple(
        Logged(f"{int(OPENED_AT) + seq}-0", entry_of(REF, attempt, seq, body))
        for seq, body in zip(count(1), bodies, strict=False)
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


def row_of(snapshot: Snapshot) -> Row:
    text, digest = snapshot.text, hashlib.sha256(snapshot.text.encode()).hexdigest()
    html = tuple(block.html for block in render(text))
    told = snapshot.state, snapshot.attempt, snapshot.seq, text, len(text), digest, snapshot.reasoning, snapshot.error
    return Row(*told, html, is_rendered=True)


def story(bodies: Sequence[Body], call: Call = CALL, attempt: int = 1) -> Evidence:
    """Tell of an answer that has these events, as everybody would who speaks the truth."""
    entries = logged(bodies, attempt)
    archive = archived(entries)
    end = folded(archive.events)
    lease = Lease(end.state, attempt, 0, 0)
    shown = replace(end, blocks=tuple(render(end.text)), shown=len(end.text), rendered_seq=end.seq)
    page = Seen("page", shown, end.text, end.state)
    return Evidence(ASKED, row_of(end), archive, entries, lease, calls=(call,), seen=(page,))


def whole() -> Evidence:
    """A whole answer, watched by one page."""
    bodies: list[Body] = [START, *map(TextDelta, pieces(TEXT)), done(TEXT)]
    told = story(bodies, replace(CALL, frames=2 + len(pieces(TEXT))))
    half = len(told.entries) // 2
    sample = LogSnapshot(told.entries[half].cursor, {1: folded(told.archived[: half + 1])})
    return replace(told, samples=(sample,))


def hurt(
    place: Place, began: float = OPENED + 1_000.0, number: int = 0, how: How = How.DISTURBED, lasted: float = 0.0
) -> Hurts:
    """Something was done to a place, by default in mid-stream, for a moment."""
    return Hurts([Hurt(place, how, number, began, began + lasted)])


def stopped(at: float, status: int = 202, state: State = State.RUNNING) -> Stop:
    """Give a request to stop that was acknowledged so many ms after the call was opened."""
    mono = OPENED + at
    return Stop(ASKED.gen, OPENED_AT + at, mono, mono, status, state)


def failed(code: str, text: str) -> Error:
    return Error(code, "it broke", retryable=True, resumable=False, text_length=len(text), timings=TIMINGS)


def cut_off(text: str, end: Body, attempt: int = 1) -> Evidence:
    """The answer ended before the upstream did, which had sent everything."""
    return replace(story([START, TextDelta(text), end], attempt=attempt), calls=whole().calls)


def lost(what: Lost, at: float = ENDED_AT - 4_000.0) -> tuple[Loss, ...]:
    return (Loss(what, to_monotonic(at), at),)


def names_broken(evidence: Evidence) -> set[str]:
    return {line.split(":")[0] for line in broken(evidence)}
