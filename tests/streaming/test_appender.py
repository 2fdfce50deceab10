"""An appender writes at once when idle, and in batches under load."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence

import pytest

from streaming.appender import PACE_MAX_S, PACE_OF_ONE_S, RENEW_S, RETRY_S, Appender
from streaming.errors import LogError, LogUnavailable
from streaming.events import TextDelta
from streaming.journal import Journal
from streaming.log.memory import MemoryLog
from streaming.log.ports import Appended, Batch, Kind
from tests.streaming.fakes import until
from tests.streaming.logs import START, new_ref


@pytest.fixture
def log() -> MemoryLog:
    ticks = itertools.count(1)
    return MemoryLog(lambda: next(ticks))


@pytest.fixture
async def appender(log: MemoryLog) -> AsyncIterator[Appender]:
    made = Appender(log)
    running = asyncio.create_task(made.run())
    yield made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def opened(log: MemoryLog, appender: Appender) -> Journal:
    ref = new_ref()
    journal = Journal(ref, (await log.claim(ref, 0)).attempt)
    appender.open(journal, lambda: None)
    journal.record(START)
    await appender.flush(journal)
    return journal


def deltas(log: MemoryLog, journal: Journal) -> list[str]:
    return [one.entry.payload for one in log._logs[journal.ref.conversation] if one.entry.kind is Kind.TEXT]


async def test_a_lone_generation_is_written_token_by_token(log: MemoryLog, appender: Appender) -> None:
    journal = await opened(log, appender)
    for word in "abc":
        journal.record(TextDelta(word))
        appender.write(journal)
        await until(lambda: journal.settled)
    assert deltas(log, journal) == ["a", "b", "c"]


async def test_alone_a_generation_may_wait_longer_than_among_others_but_never_for_long(appender: Appender) -> None:
    distances = []
    for _ in range(1000):
        appender.open(Journal(new_ref(), 1), lambda: None)
        distances.append(appender._distance())
    alone, hundred, thousand = distances[0], distances[99], distances[999]
    assert 0.025 <= alone < 0.03  # Three tokens of 100 a second go together; half of it is the median wait.
    assert hundred < 0.018
    assert max(distances) == thousand == PACE_MAX_S


async def test_beside_many_others_neighbouring_tokens_are_joined(log: MemoryLog, appender: Appender) -> None:
    journal = await opened(log, appender)
    for _ in range(int((PACE_MAX_S / PACE_OF_ONE_S) ** 2)):
        appender.open(Journal(new_ref(), 1), lambda: None)
    for word in "abc":
        journal.record(TextDelta(word))
        appender.write(journal)
        await asyncio.sleep(0)
    await until(lambda: journal.settled)
    assert deltas(log, journal) == ["abc"]


async def test_a_flush_does_not_wait_for_the_next_round(log: MemoryLog, appender: Appender) -> None:
    journal = await opened(log, appender)
    appender._round_at += 3600  # The next one is an hour away.
    journal.record(TextDelta("a"))
    appender.write(journal)
    await appender.flush(journal)
    assert deltas(log, journal) == ["a"]


async def test_a_generation_that_the_log_refuses_holds_up_no_other(log: MemoryLog, appender: Appender) -> None:
    refused, other = await opened(log, appender), await opened(log, appender)
    append = log._append
    log._append = lambda batch: LogUnavailable("wrong type") if batch.ref == refused.ref else append(batch)  # type: ignore[method-assign]
    for journal in (refused, other):
        journal.record(TextDelta("a"))
        appender.write(journal)
    await until(lambda: other.settled)
    for word in "bcdefg":  # Each is written long before the refused one is tried again.
        other.record(TextDelta(word))
        async with asyncio.timeout(RETRY_S[-1] / 2):
            await appender.flush(other)
    log._append = append  # type: ignore[method-assign]
    await until(lambda: refused.settled)
    assert (deltas(log, refused), deltas(log, other)) == (["a"], list("abcdefg"))


async def test_an_answer_that_was_under_way_proves_nothing(log: MemoryLog, appender: Appender) -> None:
    journal = await opened(log, appender)
    under_way, go_on, append = asyncio.Event(), asyncio.Event(), log.append

    async def slowly(batches: Sequence[Batch]) -> list[Appended | LogError]:
        answers = await append(batches)
        under_way.set()
        await go_on.wait()
        return answers

    log.append = slowly  # type: ignore[method-assign]
    appender.write(journal, now=True)
    await under_way.wait()
    proving = asyncio.create_task(appender.prove(journal))
    await asyncio.sleep(0)
    log._metas[journal.ref].attempt += 1  # Meanwhile another has taken over.
    go_on.set()
    await proving
    assert journal.fenced


async def test_a_quiet_generation_keeps_its_lease_beside_one_that_never_pauses(
    log: MemoryLog, appender: Appender
) -> None:
    quiet, busy = await opened(log, appender), await opened(log, appender)
    append, written = log.append, []

    async def more_comes_meanwhile(batches: Sequence[Batch]) -> list[Appended | LogError]:
        written.extend(batch.ref for batch in batches)
        busy.record(TextDelta("x"))
        appender.write(busy)
        return await append(batches)

    log.append = more_comes_meanwhile  # type: ignore[method-assign]
    appender.write(busy)
    await until(lambda: len(written) == 3)  # The loop is not idle any more.
    appender._open[quiet].written_at -= RENEW_S
    async with asyncio.timeout(2):
        await until(lambda: quiet.ref in written)


async def test_a_generation_that_the_log_refuses_is_not_tried_with_each_of_its_tokens(
    log: MemoryLog, appender: Appender
) -> None:
    refused, other = await opened(log, appender), await opened(log, appender)
    append, tried = log._append, []

    def not_this_one(batch: Batch) -> Appended | LogError:
        tried.append(batch.ref)
        return LogUnavailable("wrong type") if batch.ref == refused.ref else append(batch)

    log._append = not_this_one  # type: ignore[method-assign]
    for _ in range(10):
        for journal in (refused, other):
            journal.record(TextDelta("a"))
            appender.write(journal)
        await until(lambda: other.settled)
    assert (tried.count(refused.ref), tried.count(other.ref)) == (1, 10)
