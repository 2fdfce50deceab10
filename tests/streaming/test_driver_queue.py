"""What a driver does around its calls: it waits for its model's turn, and counts tokens where nobody else did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from streaming.cancel import request_cancel
from streaming.driver import Driver
from streaming.errors import UpstreamError
from streaming.events import TextDelta
from streaming.journal import Journal
from streaming.lifecycle import State
from streaming.log.memory import MemoryLog
from streaming.log.ports import LEASE_MS
from streaming.store import Job
from streaming.upstream.ports import (
    FinishChunk,
    Message,
    Opened,
    ReasoningChunk,
    TextChunk,
    ToolChunk,
    UsageChunk,
)
from streaming.upstream.turns import Turns
from tests.streaming.fakes import HELLO, job, until
from tests.streaming.logs import START, Writer, write
from tests.streaming.process import Clock, Process, serving

LOST = UpstreamError("connection_lost", "What happened, and what to do.")


@pytest.fixture
async def process() -> AsyncIterator[Process]:
    clock = Clock()
    made = Process(MemoryLog(clock), clock)
    async with serving(made):
        yield made


@pytest.fixture
def turns() -> Turns:
    """A model that writes one answer at a time."""
    return Turns(1)


async def drive(process: Process, turns: Turns) -> tuple[Job, Driver, asyncio.Task[None]]:
    """Drive one generation that has to wait for its turn."""
    one = process.store.add(job())
    claim = await process.log.claim(one.ref, 0)
    journal = Journal(one.ref, claim.attempt)
    driver = Driver(one, journal, process.runtime._appender, process.store, process.clock)
    process.runtime._drivers[one.ref.gen] = driver
    driving = asyncio.create_task(driver.run(process.upstream.prepare, lambda _: turns.ask("somebody")))
    return one, driver, driving


async def test_a_generation_that_waits_for_its_turn_is_queued_everywhere(process: Process, turns: Turns) -> None:
    turns.ask("somebody else")
    one, _, driving = await drive(process, turns)
    await until(lambda: turns.waiting)
    assert (process.store.jobs[one.ref.gen].state, await process.events(one.ref)) == (State.QUEUED, [])
    driving.cancel()


async def test_it_goes_on_as_soon_as_its_turn_comes(process: Process, turns: Turns) -> None:
    process.upstream.script = HELLO
    first = turns.ask("somebody else")
    one, _, driving = await drive(process, turns)
    first.give_back()
    await driving
    assert (await process.snapshot(one.ref)).state is State.COMPLETED


@pytest.mark.parametrize("script", [HELLO, (Opened(), LOST)])
async def test_however_it_ends_the_next_one_has_its_turn(process: Process, turns: Turns, script: Any) -> None:
    process.upstream.script = script
    _, _, driving = await drive(process, turns)
    await until(lambda: turns._running)
    next_one = turns.ask("somebody else")
    await driving
    assert next_one.granted.done()


async def test_a_cancel_needs_no_turn_and_calls_no_model(process: Process, turns: Turns) -> None:
    turns.ask("somebody else")
    one, driver, driving = await drive(process, turns)
    await until(lambda: turns.waiting)
    await request_cancel(process.log, process.store, one.ref, "user", process.clock)
    driver.look()
    await driving
    snapshot = await process.snapshot(one.ref)
    assert (snapshot.state, snapshot.cancel and snapshot.cancel["upstream"]) == (State.CANCELLED, "closed")
    assert (process.upstream.calls, turns.waiting) == ([], 0)


async def test_a_worker_that_must_go_leaves_the_waiting_to_others(process: Process, turns: Turns) -> None:
    turns.ask("somebody else")
    one, driver, driving = await drive(process, turns)
    await until(lambda: turns.waiting)
    driver.interrupt()
    await driving
    assert (process.store.jobs[one.ref.gen].state, await process.events(one.ref)) == (State.QUEUED, [])


async def test_of_two_drivers_with_one_attempt_only_one_calls_the_model(process: Process, turns: Turns) -> None:
    """The log lost a generation that waited, and a second worker took it with the same attempt."""
    process.upstream.script = HELLO
    first_place = turns.ask("somebody else")
    one, _, driving = await drive(process, turns)
    await until(lambda: turns.waiting)
    process.log._metas.clear()  # type: ignore[attr-defined]
    async with serving(other := Process(process.log, process.clock)):
        other.store = process.store
        claim = await other.log.claim(one.ref, one.attempt)
        second = Driver(one, Journal(one.ref, claim.attempt), other.runtime._appender, other.store, other.clock)
        other.upstream.script = HELLO
        await second.run(other.upstream.prepare)
        first_place.give_back()
        await driving
    assert (claim.attempt, len(process.upstream.calls) + len(other.upstream.calls)) == (1, 1)
    assert (await process.snapshot(one.ref)).text == "Hello world"


async def test_a_stop_that_came_with_the_claim_does_not_wait_for_a_turn(process: Process, turns: Turns) -> None:
    turns.ask("somebody else")
    one = process.store.add(job())
    await process.log.cancel(one.ref, "user")
    claim = await process.log.claim(one.ref, 0)
    journal = Journal(one.ref, claim.attempt)
    journal.cancel = claim.cancel
    driver = Driver(one, journal, process.runtime._appender, process.store, process.clock)
    async with asyncio.timeout(1):  # The next renewal of the lease is further away than this.
        await driver.run(process.upstream.prepare, lambda _: turns.ask("somebody"))
    assert (await process.snapshot(one.ref)).state is State.CANCELLED


async def usage_of(process: Process, *script: Any) -> Any:
    process.upstream.script = script
    one, driving = process.start(messages=(Message("user", "Hello?"),))
    await driving
    return (await process.snapshot(one.ref)).usage


async def test_usage_is_estimated_where_none_came(process: Process) -> None:
    assert await usage_of(process, *HELLO) == {"source": "estimated", "input": 12, "output": 3}


async def test_reasoning_and_tools_are_counted_too(process: Process) -> None:
    script = (Opened(), ReasoningChunk("a" * 40), ToolChunk("c", "b" * 40, "f"), FinishChunk("stop"))
    assert (await usage_of(process, *script))["output"] == 20


async def test_usage_is_estimated_where_an_answer_breaks_off(process: Process) -> None:
    usage = await usage_of(process, Opened(), UsageChunk(9, 1), TextChunk("a" * 40), LOST)
    assert usage == {"source": "estimated", "input": 9, "output": 10}


async def test_usage_is_estimated_where_an_answer_is_stopped(process: Process) -> None:
    process.upstream.script = (Opened(), TextChunk("a" * 40))
    one, driving = process.start()
    await until(lambda: process.log._metas.get(one.ref) and process.log._metas[one.ref].text)  # type: ignore[attr-defined]
    await request_cancel(process.log, process.store, one.ref, "user", process.clock)
    await driving
    usage = (await process.snapshot(one.ref)).usage
    assert usage is not None
    assert (usage["source"], usage["output"]) == ("estimated", 10)


async def test_usage_is_estimated_where_a_driver_was_lost(process: Process) -> None:
    one = process.store.add(job(state=State.RUNNING, attempt=1, messages=(Message("user", "Hello?"),)))
    dead = Writer(one.ref, (await process.log.claim(one.ref, 0)).attempt)
    await write(process.log, dead.batch(START, TextDelta("a" * 40)))
    process.clock.offset += LEASE_MS
    await process.runtime.drive(one.ref.gen)
    assert (await process.snapshot(one.ref)).usage == {"source": "estimated", "input": 12, "output": 10}


async def test_a_call_that_was_never_answered_used_nothing(process: Process) -> None:
    assert await usage_of(process, LOST) is None


async def test_what_the_service_counted_is_not_estimated(process: Process) -> None:
    usage = await usage_of(process, Opened(), TextChunk("a"), UsageChunk(3, 9), FinishChunk("stop"))
    assert usage == {"source": "upstream", "input": 3, "output": 9}
