"""Ends a generation that nobody drives any more, and repairs a log that misses a committed end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from streaming.errors import LogUnavailable
from streaming.events import (
    Body,
    Cancelled,
    Error,
    Event,
    ReasoningDelta,
    Start,
    Step,
    Terminal,
    TextDelta,
    ToolComplete,
    ToolDelta,
    Usage,
    events_of,
    lines_of,
)
from streaming.frames import START_CURSOR
from streaming.journal import Journal
from streaming.lifecycle import DRIVER_LOST, TERMINAL, State
from streaming.log.codec import event_of
from streaming.log.ports import LEASE_MS, Claim, Kind, Log, Ref
from streaming.markdown import render
from streaming.snapshot import Block, Snapshot, fold, fold_all
from streaming.store import Job, Outcome, Store
from streaming.upstream.estimate import estimate_input, estimate_tokens

logger = logging.getLogger(__name__)

LOOK_AGAIN_S = LEASE_MS / 1000
_RETRY_S = (0.05, 0.2, 0.5, 1.0, 2.0)
# So many entries are read at a time: others' streams go on in between.
_PAGE = 2_000
_END_OF_TIME = f"{10**14}-0"


async def end_unowned(log: Log, store: Store, job: Job, claim: Claim, clock: Callable[[], int]) -> State:
    """
    End a claimed generation without calling its model: as cancelled if that was asked for, else as lost.

    Whatever text the log still holds is kept. Gives the state it ended in, which may be that of an end that was
    committed since the job was read.
    """
    left = await _left(log, job)
    snapshot = left.snapshot
    if snapshot.state in TERMINAL:
        return await _ended_before(log, store, job, claim, snapshot.state)
    journal = Journal(job.ref, claim.attempt, snapshot.seq, snapshot.state)
    blocks = tuple(Block(block.html, sealed=True) for block in render(snapshot.text))
    for index, block in enumerate(blocks):
        journal.show(index, block.html, sealed=True, length=len(snapshot.text))
    last = [
        Event(job.ref.gen, claim.attempt, seq, clock(), body)
        for seq, body in enumerate((*_used(job, snapshot), _terminal(job, claim, snapshot, clock)), snapshot.seq + 1)
    ]
    final = replace(
        reduce(fold, last, snapshot), model=job.model, pane=job.pane, params=job.params, blocks=blocks,
        shown=len(snapshot.text), rendered_seq=snapshot.seq,
    )  # fmt: skip
    if not await store.begin(job.ref.gen, claim.attempt):
        return await _ended_before(log, store, job, claim, snapshot.state)
    outcome = Outcome(final, _archive(left.events, last))
    if await store.finish(job.ref.gen, claim.attempt, outcome):
        if not left.is_stored:
            await repair(log, job, claim, outcome)
            return final.state
        for event in last:
            journal.record(event.body)
        await _write(log, journal)
    return final.state


async def _ended_before(log: Log, store: Store, job: Job, claim: Claim, state: State) -> State:
    """Repair the log of a generation that somebody else has ended; give its state, or if nobody has, the given one."""
    outcome = await store.ended(job.ref.gen)
    if outcome is None:
        return state
    await repair(log, job, claim, outcome)
    return outcome.snapshot.state


async def settle(log: Log, store: Store, job: Job, claim: Claim, clock: Callable[[], int]) -> bool:
    """End or repair a claimed generation that somebody began before. False when nobody did: it can be driven."""
    if job.state in TERMINAL:
        await _ended_before(log, store, job, claim, job.state)
        return True
    if claim.seq == 0 and job.attempt == 0:
        return False
    await end_unowned(log, store, job, claim, clock)
    return True


async def end_lost(log: Log, store: Store, refs: Sequence[Ref], clock: Callable[[], int]) -> None:
    """
    End those whose driver is lost; for whoever reads them, because there may be no worker left to do it.

    Looks twice, a lease apart: after Redis was away, a driver that lives needs a moment to renew its
    lease, or to write again what vanished. One that nobody has begun is left to the workers.

    Raises:
        LogUnavailable
    """
    lost = await _without_driver(log, refs)
    if not lost:
        return
    await asyncio.sleep(LOOK_AGAIN_S)
    for ref in await _without_driver(log, lost):
        job = await store.job(ref.gen)
        if job is None or job.attempt == 0:
            continue
        claim = await log.claim(ref, job.attempt)
        if claim.granted:
            logger.warning("generation %s: a reader found that nobody drives it", ref.gen)
            await settle(log, store, job, claim, clock)


async def repair(log: Log, job: Job, claim: Claim, outcome: Outcome) -> None:
    """
    Write what the log misses of a committed generation.

    An archive that was told again from a snapshot is numbered otherwise than the log was, so of that
    only the end fits. Whoever had not read all before it syncs: the end says how long the text is.
    """
    events = list(events_of(outcome.events))
    if claim.seq >= len(events) or (claim.seq and outcome.snapshot.seq != len(events)):
        journal = Journal(job.ref, claim.attempt, claim.seq, claim.state)
        journal.record(events[-1].body)
    else:
        journal = Journal(job.ref, claim.attempt)
        for event in events:
            journal.record(event.body)
            journal.take()  # Closes the delta, so that each event keeps its own seq.
    await _write(log, journal)


@dataclass(frozen=True, slots=True)
class _Left:
    """What a log still holds of a generation."""

    snapshot: Snapshot
    events: Sequence[Event]  # dense from 1; they give the snapshot
    is_stored: bool  # Is the snapshot the log's own?


async def _left(log: Log, job: Job) -> _Left:
    """
    Read a generation from its entries, and if they are not whole from the snapshot beside them.

    Keys may be deleted or evicted one by one, and a long answer's first entries are trimmed by age.
    """
    known = (await log.snapshot(job.ref.conversation, [job.ref])).generations.get(job.ref.number)
    snapshot, events = known or Snapshot(job.ref.gen), await _events(log, job)
    if len(events) < snapshot.seq:
        return _Left(snapshot, _told_again(job, snapshot), is_stored=True)
    return _Left(fold_all(job.ref.gen, events), events, is_stored=len(events) == snapshot.seq)


async def _without_driver(log: Log, refs: Sequence[Ref]) -> list[Ref]:
    leases = zip(refs, await log.leases(refs), strict=True)
    return [ref for ref, lease in leases if lease is None or not (lease.runs or lease.state in TERMINAL)]


async def _events(log: Log, job: Job) -> list[Event]:
    """Read the events that are whole from the first on. What a driver had to write again is there twice."""
    events: list[Event] = []
    cursor = START_CURSOR
    while logged := await log.range(job.ref.conversation, cursor, _END_OF_TIME, _PAGE):
        cursor = logged[-1].cursor
        for one in logged:
            entry = one.entry
            if entry.number == job.ref.number and entry.kind is not Kind.BLOCK and entry.seq == len(events) + 1:
                events.append(event_of(job.ref.gen, one))
    return events


def _told_again(job: Job, snapshot: Snapshot) -> list[Event]:
    """Tell a snapshot as a few events, numbered anew."""
    bodies: list[Body] = [Start(job.model, job.pane, job.params)]
    bodies += [Step(n, label) for n, label in enumerate(snapshot.steps, start=1)]
    bodies += [ReasoningDelta(snapshot.reasoning)] if snapshot.reasoning else []
    bodies += [TextDelta(snapshot.text)] if snapshot.text else []
    bodies += [ToolDelta(tool.call, tool.arguments, tool.name) for tool in snapshot.tools]
    bodies += [ToolComplete(tool.call, tool.name, tool.arguments) for tool in snapshot.tools if tool.complete]
    bodies += [Usage(**snapshot.usage)] if snapshot.usage else []
    return [Event(job.ref.gen, snapshot.attempt, seq, job.queued_at, body) for seq, body in enumerate(bodies, start=1)]


def _archive(events: Sequence[Event], last: Sequence[Event]) -> str:
    return lines_of(replace(event, seq=seq) for seq, event in enumerate((*events, *last), start=1))


def _used(job: Job, snapshot: Snapshot) -> list[Usage]:
    """Estimate what a lost driver's call took; it had no time to say it itself."""
    written = "".join((snapshot.text, snapshot.reasoning, *(tool.arguments for tool in snapshot.tools)))
    if snapshot.usage is not None or not written:
        return []
    return [Usage("estimated", estimate_input(job.messages), estimate_tokens(written))]


def _terminal(job: Job, claim: Claim, snapshot: Snapshot, clock: Callable[[], int]) -> Terminal:
    timings = {"queued_at": job.queued_at, "ended_at": clock()}
    length = len(snapshot.text)
    if claim.cancel is not None:
        # Nobody is left who could say whether the model stopped, unless it was never called.
        upstream = "closed" if job.attempt == 0 and snapshot.seq == 0 else "unproven"
        timings["cancel_asked_at"] = claim.cancel.at
        return Cancelled(claim.cancel.by, upstream, max(0, clock() - claim.cancel.at), length, timings)
    message = f"The server that wrote this answer went away. {_remains(job, claim, snapshot)}"
    return Error(DRIVER_LOST, message, True, False, length, timings)


def _remains(job: Job, claim: Claim, snapshot: Snapshot) -> str:
    if snapshot.seq:
        return "What had arrived is kept; ask again for a whole answer."
    if job.state is not State.QUEUED and not claim.was_known:
        # A driver that lives writes a log that vanished again within its lease. So both are gone.
        return "What it had written was lost together with the log that held it; ask again."
    return "Nothing had arrived; ask again."


async def _write(log: Log, journal: Journal) -> None:
    for delay in _RETRY_S:
        try:
            (answer,) = await log.append([journal.take()])
        except LogUnavailable as exc:
            answer = exc
        journal.settle(answer)
        if journal.settled or journal.fenced:
            return
        await asyncio.sleep(delay)
    logger.warning("generation %s: its end is committed, but the log does not have it yet", journal.ref.gen)
