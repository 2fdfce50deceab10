"""What must hold of whole conversations, and of what the site answers to requests. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from streaming.log.ports import Logged
from streaming.snapshot import Snapshot
from tests.torture.account import Call
from tests.torture.hurts import Hurts, Place
from tests.torture.person import Asked, Refusal

# A driver is told to let go at once; one that cannot hear it, or stands still, finds out later.
_LET_GO_MS = 1_000.0
_FOUND_MS = 20_000.0
# A person waits for so long for one answer.
_ASKING_MS = 8_000.0

_TO_WEB = (Place.WEB, Place.NGINX, Place.NGINX_TO_WEB, Place.FRONT)
_TO_LOG = (Place.REDIS, Place.WEB_TO_REDIS)
# What may explain that a request did not get what it asked for. Nothing explains any other status.
_EXPLAINS: Mapping[int | None, Sequence[Place]] = {
    None: (*_TO_WEB, *_TO_LOG, Place.DATABASE),  # no answer within the time that a person waits, or a broken one
    500: (Place.DATABASE, Place.WEB),
    502: _TO_WEB,
    504: _TO_WEB,
    503: _TO_LOG,
    4502: (Place.WEB,),
    4503: _TO_LOG,
}


@dataclass(frozen=True, slots=True)
class Held:
    """A conversation as it was asked for, and as the database has it."""

    conversation: str
    turns_asked: int
    asked: Sequence[Asked]
    turns: int
    generations: Mapping[str, tuple[int, str]]  # number and model


@dataclass(frozen=True, slots=True)
class Deleted:
    """What is left of a conversation that was deleted; `at_mono` is when the site said that it was."""

    held: Held
    at_mono: float
    calls: Sequence[Call]
    entries: Sequence[Logged]
    logged: Mapping[int, Snapshot]


def holds_what_was_asked(held: Held) -> Iterator[str]:
    """The database has each turn once, and for each pane one generation: none that nobody asked for, none less."""
    if held.turns != held.turns_asked:
        yield f"{held.turns} turns, {held.turns_asked} were asked"
    asked = {one.gen: (one.number, one.model) for one in held.asked}
    if held.generations != asked:
        more, less = held.generations.keys() - asked.keys(), asked.keys() - held.generations.keys()
        yield f"{len(more)} generations too many: {sorted(more)}; missing: {sorted(less)}; {held.generations}"


def nothing_is_left(deleted: Deleted, hurts: Hurts) -> Iterator[str]:
    """After a conversation was deleted no row and no text of it is left, its calls are closed and none is made."""
    held, at = deleted.held, deleted.at_mono
    if held.turns or held.generations:
        yield f"the database has {held.turns} turns and {len(held.generations)} generations of it"
    then = at - _ASKING_MS, at + _LET_GO_MS
    is_late = hurts.felt((*_TO_LOG, Place.WORKER, Place.WORKER_TO_REDIS, Place.DATABASE), *then)
    let_go = _FOUND_MS if is_late else _LET_GO_MS
    for call in deleted.calls:
        closed = call.closed_mono if call.closed_mono is not None else float("inf")
        if closed > at + let_go:
            yield f"call {call.n} went on for {closed - at:.0f} ms after the deletion"
        # On a way that was silent a request stands still, and arrives although its caller has left.
        way = hurts.felt([Place.WORKER_TO_UPSTREAM], at, call.opened_mono, call.way.worker, recovery=0.0)
        if call.opened_mono > at + _LET_GO_MS and not way:
            yield f"call {call.n} was made {call.opened_mono - at:.0f} ms after the deletion"
    # Where Redis could not be told, what it holds goes by its age.
    if hurts.felt(_TO_LOG, *then):
        return
    texts = [number for number, snapshot in deleted.logged.items() if snapshot.text or snapshot.reasoning]
    if texts or deleted.entries:
        yield f"the log has {len(deleted.entries)} entries, and text of the generations {texts}"


def refusals_are_explained(refusals: Sequence[Refusal], hurts: Hurts) -> Iterator[str]:
    """Whatever the site refuses, or does not answer, is explained by what was done to it at that moment."""
    for refusal in refusals:
        places = _EXPLAINS.get(refusal.status, ())
        if not hurts.felt(places, refusal.began, refusal.ended):
            yield f"{refusal.what}: {refusal.status} {refusal.said}; unhurt: {', '.join(places)}"


def every_call_was_asked_for(calls: Sequence[Call], mark: str) -> Iterator[str]:
    """The upstream is called for what was asked, and for nothing else."""
    # Those of other scenarios, before on the same site, have other marks.
    for call in calls:
        if call.turn.startswith(mark):
            yield f"call {call.n} of {call.script} at {call.turn!r}, after {call.asked}"
