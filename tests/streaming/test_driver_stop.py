"""What a driver does when it is told to stop, or must not go on: at every moment of an answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from streaming import driver as driver_module
from streaming.cancel import request_cancel
from streaming.driver import Driver
from streaming.errors import LogUnavailable
from streaming.journal import Journal
from streaming.lifecycle import State
from streaming.log.memory import MemoryLog
from streaming.log.ports import LEASE_MS, Claim, Ref
from streaming.upstream.ports import (
    FinishChunk,
    Opened,
    TextChunk,
)
from tests.streaming.fakes import HELLO, error, job, until
from tests.streaming.process import Clock, Process, serving


class AwayLog(MemoryLog):
    """A log that cannot be written to for as long as a test says so."""

    away = False

    async def append(self, batches: Any) -> Any:
        if self.away:
            raise LogUnavailable("away")
        return await super().append(batches)


async def test_a_cancel_in_mid_answer_closes_the_upstream_and_keeps_the_text(process: Process) -> None:
    process.upstream.script = (Opened(), TextChunk("Hel"))
    one, driving = process.start()
    await until(lambda: process.log._metas.get(one.ref) and process.log._metas[one.ref].text)  # type: ignore[attr-defined]
    assert await request_cancel(process.log, process.store, one.ref, "user", process.clock) is State.RUNNING
    await driving
    snapshot = await process.snapshot(one.ref)
    assert (snapshot.state, snapshot.text) == (State.CANCELLED, "Hel")
    assert snapshot.cancel is not None
    assert (snapshot.cancel["reason"], snapshot.cancel["upstream"]) == ("user", "closed")
    assert process.upstream.calls[0].closed


async def test_a_cancel_while_connecting_needs_no_first_byte(process: Process) -> None:
    one, driving = process.start()
    await process.upstream.called.wait()
    await request_cancel(process.log, process.store, one.ref, "user", process.clock)
    await driving
    assert (await process.snapshot(one.ref)).state is State.CANCELLED
    assert process.upstream.calls[0].closed


async def test_a_cancelled_queue_entry_never_calls_the_model(process: Process) -> None:
    one = process.store.add(job())
    state = await request_cancel(process.log, process.store, one.ref, "user", process.clock)
    assert state is State.CANCELLED
    await process.runtime.drive(one.ref.gen)
    assert process.upstream.calls == []
    snapshot = await process.snapshot(one.ref)
    assert (snapshot.state, snapshot.seq) == (State.CANCELLED, 1)
    assert snapshot.cancel is not None
    assert snapshot.cancel["upstream"] == "closed"


async def test_a_cancel_recorded_before_the_claim_is_honoured_by_whoever_claims(process: Process) -> None:
    one = process.store.add(job())
    await process.log.cancel(one.ref, "user")
    await process.runtime.drive(one.ref.gen)
    assert process.upstream.calls == []
    assert (await process.snapshot(one.ref)).state is State.CANCELLED


async def test_a_cancel_after_the_end_changes_nothing(process: Process) -> None:
    process.upstream.script = HELLO
    one, driving = process.start()
    await driving
    before = await process.events(one.ref)
    state = await request_cancel(process.log, process.store, one.ref, "user", process.clock)
    assert state is State.COMPLETED
    assert await process.events(one.ref) == before


async def test_an_upstream_that_will_not_close_is_said_to_be_unproven(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "CLOSE_PROOF_S", 0.02)
    process.upstream.never_closes = True
    one, driving = process.start()
    await process.upstream.called.wait()
    await request_cancel(process.log, process.store, one.ref, "user", process.clock)
    await driving
    assert (await process.snapshot(one.ref)).cancel["upstream"] == "unproven"  # type: ignore[index]


async def test_a_stop_that_crosses_an_end_claims_no_proof_that_it_does_not_have(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "CLOSE_PROOF_S", 0.02)
    log = AwayLog(clock)
    process = Process(log, clock)
    process.upstream.never_closes = True
    async with serving(process):
        one, driving = process.start()
        await process.upstream.called.wait()
        log.away = True
        await log.cancel(one.ref, "user")
        process.upstream.calls[0].say(error("idle_timeout"))
        log.away = False
        await driving
    cancel = process.store.outcomes[one.ref.gen].snapshot.cancel
    assert cancel is not None
    assert cancel["upstream"] == "unproven"


async def test_a_stop_does_not_wait_for_the_next_round_of_writes(process: Process) -> None:
    process.upstream.script = (Opened(), TextChunk("Hel"))
    one, driving = process.start()
    await until(lambda: process.log._metas.get(one.ref) and process.log._metas[one.ref].text)  # type: ignore[attr-defined]
    process.runtime._appender._round_at += 3600  # As if the process were so busy that the next round is an hour away.
    await process.log.cancel(one.ref, "user")
    await driving
    assert (await process.snapshot(one.ref)).state is State.CANCELLED


async def test_cancelling_one_generation_leaves_its_neighbour_alone(process: Process) -> None:
    process.upstream.script = (Opened(), TextChunk("a"))
    one, driving = process.start()
    two, other = process.start()
    await until(lambda: len(process.upstream.calls) == 2)
    await request_cancel(process.log, process.store, one.ref, "user", process.clock)
    await driving
    (call,) = [call for call in process.upstream.calls if not call.closed]
    call.text("b")
    call.say(FinishChunk("stop"))
    await other
    assert (await process.snapshot(two.ref)).text == "ab"


async def test_a_stop_that_was_recorded_before_the_answers_last_text_wins_over_its_end(clock: Clock) -> None:
    log = AwayLog(clock)
    process = Process(log, clock)
    async with serving(process):
        one, driving = process.start()
        await process.upstream.called.wait()
        log.away = True
        await log.cancel(one.ref, "user")
        process.upstream.calls[0].text("All of it.")
        process.upstream.calls[0].say(FinishChunk("stop"))
        await until(lambda: process.upstream.calls[0].closed)
        log.away = False
        await driving
    outcome = process.store.outcomes[one.ref.gen].snapshot
    assert (outcome.state, outcome.text) == (State.CANCELLED, "All of it.")


async def test_a_drain_lets_short_answers_finish(process: Process) -> None:
    one, driving = process.start()
    await process.upstream.called.wait()
    draining = asyncio.create_task(process.runtime.drain(30))
    process.upstream.calls[0].say(*HELLO)
    await asyncio.gather(draining, driving)
    assert (await process.snapshot(one.ref)).state is State.COMPLETED


async def test_what_comes_during_a_drain_goes_back_to_the_queue(process: Process) -> None:
    await process.runtime.drain(30)
    one, driving = process.start()
    assert not await driving
    assert (process.dispatched, process.upstream.calls) == ([one.ref.gen], [])


async def test_a_drain_interrupts_what_outlasts_its_grace(process: Process) -> None:
    process.upstream.script = (Opened(), TextChunk("half"))
    one, driving = process.start()
    await process.upstream.called.wait()
    await process.runtime.drain(0.02)
    await driving
    snapshot = await process.snapshot(one.ref)
    assert (snapshot.state, snapshot.text) == (State.INTERRUPTED, "half")
    await process.runtime.drive(process.store.add(job()).ref.gen)
    assert len(process.upstream.calls) == 1


async def test_a_driver_that_slept_since_its_claim_calls_no_model(process: Process, clock: Clock) -> None:
    one = process.store.add(job())
    claim = await process.log.claim(one.ref, 0)
    clock.offset += LEASE_MS
    assert (await process.log.claim(one.ref, 0)).attempt == 2  # Another has taken it, and has not begun yet.
    driver = Driver(one, Journal(one.ref, claim.attempt), process.runtime._appender, process.store, clock)
    await driver.run(process.upstream.prepare)
    assert process.upstream.calls == []


async def test_a_driver_that_lost_its_lease_between_two_tries_makes_no_further_call(
    process: Process, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It slept, and what it had asked for timed out meanwhile."""
    monkeypatch.setattr(driver_module, "RETRY_BASE_S", 0.0)
    one, driving = process.start()
    await process.upstream.called.wait()
    clock.offset += LEASE_MS
    assert (await process.log.claim(one.ref, 1)).granted
    process.upstream.calls[0].say(error("first_byte_timeout", retryable=True))
    await driving
    assert len(process.upstream.calls) == 1


async def test_a_stop_between_two_tries_makes_no_further_call(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module.random, "uniform", lambda *_: 3600.0)
    process.upstream.script = [error("connect_refused", retryable=True)]
    one, driving = process.start()
    await until(lambda: process.upstream.calls and process.upstream.calls[0].closed)
    await request_cancel(process.log, process.store, one.ref, "user", process.clock)
    await driving
    assert (len(process.upstream.calls), (await process.snapshot(one.ref)).state) == (1, State.CANCELLED)


@pytest.mark.parametrize("entries", ["kept", "lost too"])
async def test_a_stop_of_what_ended_since_it_was_looked_up_gives_the_true_end(process: Process, entries: str) -> None:
    process.upstream.script = HELLO
    one, driving = process.start()
    looked_up = process.store.jobs[one.ref.gen]
    await driving
    process.log._metas.clear()  # type: ignore[attr-defined]
    if entries == "lost too":
        process.log._logs.clear()  # type: ignore[attr-defined]
    ended, process.store.jobs[one.ref.gen] = process.store.jobs[one.ref.gen], looked_up
    cancel = process.log.cancel

    async def it_ended_meanwhile(ref: Ref, by: str) -> Claim:
        process.store.jobs[one.ref.gen] = ended
        return await cancel(ref, by)

    process.log.cancel = it_ended_meanwhile  # type: ignore[method-assign]
    state = await request_cancel(process.log, process.store, one.ref, "user", process.clock)
    assert state is State.COMPLETED
    assert (await process.snapshot(one.ref)).state is State.COMPLETED
