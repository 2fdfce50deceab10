"""Ends a generation that nobody drives any more, and repairs a log that misses a committed end."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import reduce

from streaming.errors import LogUnavailable
from streaming.events import Cancelled, Error, Event, Terminal, Usage, dumps, event_from_dict, event_to_dict
from streaming.frames import START_CURSOR
from streaming.journal import Journal
from streaming.lifecycle import DRIVER_LOST, State
from streaming.log.codec import event_of
from streaming.log.ports import Claim, Kind, Log
from streaming.markdown import render
from streaming.snapshot import Block, Snapshot, fold
from streaming.store import Job, Outcome, Store
from streaming.upstream.estimate import estimate_input, estimate_tokens

logger = logging.getLogger(__name__)

_RETRY_S = (0.05, 0.2, 0.5, 1.0, 2.0)
# Far beyond any answer's number of entries; a log is trimmed by age, not by length.
_ALL = 1_000_000
_END_OF_TIME = f"{10**14}-0"


async def end_unowned(log: Log, store: Store, job: Job, claim: Claim, clock: Callable[[], int]) -> State:
    """
    End a claimed generation without calling its model: as cancelled if that was asked for, else as lost.

    Whatever text the log still holds is kept. Gives the state it ended in.
    """
    known = (await log.snapshot(job.ref.conversation, [job.ref])).generations.get(job.ref.number)
    snapshot = known or Snapshot(job.ref.gen)
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
    events = [*await _events(log, job), *last]
    if not await store.begin(job.ref.gen, claim.attempt):
        return snapshot.state
    outcome = Outcome(final, "\n".join(dumps(event_to_dict(event)) for event in events))
    if await store.finish(job.ref.gen, claim.attempt, outcome):
        for event in last:
            journal.record(event.body)
        await _write(log, journal)
    return final.state


async def repair(log: Log, job: Job, claim: Claim, outcome: Outcome) -> None:
    """Write a committed generation to the log again. What the log already holds is skipped there."""
    journal = Journal(job.ref, claim.attempt)
    for line in outcome.events.split("\n"):
        journal.record(event_from_dict(json.loads(line)).body)
        journal.take()  # Closes the delta, so that each event keeps its own seq.
    await _write(log, journal)


async def _events(log: Log, job: Job) -> list[Event]:
    logged = await log.range(job.ref.conversation, START_CURSOR, _END_OF_TIME, _ALL)
    mine = (one for one in logged if one.entry.number == job.ref.number and one.entry.kind is not Kind.BLOCK)
    return [event_of(job.ref.gen, one) for one in mine]


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
    if job.state is not State.QUEUED and snapshot.seq == 0:
        message = "What was written of this answer was lost together with the log that held it. Ask again."
        return Error("log_lost", message, True, False, 0, timings)
    message = "The server that wrote this answer went away. What had arrived is kept; ask again for a whole answer."
    return Error(DRIVER_LOST, message, True, False, length, timings)


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
