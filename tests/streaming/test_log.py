"""One contract for every log: what memory promises, the scripts in Redis must keep."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

import pytest

from streaming.errors import Fenced, LogLost
from streaming.events import (
    BlockView,
    Cancelled,
    CancelView,
    ReasoningDelta,
    ToolDelta,
    Usage,
    view_from_dict,
)
from streaming.frames import cursor_key
from streaming.lifecycle import State
from streaming.log.codec import entry_from_log, is_to_come, position_of, turn_notice, wire
from streaming.log.memory import MemoryLog
from streaming.log.ports import LEASE_MS, Kind, Log, Ref
from streaming.log.redis import RedisLog, append_keys
from tests.streaming.logs import DONE, START, Writer, absent, claimed, folded, new_ref, stored, texts, write


class MemoryCase:
    def __init__(self) -> None:
        self.log = MemoryLog(lambda: int(time.time() * 1000))

    async def expire(self, ref: Ref, ago_ms: int = 1) -> None:
        """Let a lease have ended so long ago."""
        self.log._metas[ref].lease = self.log._clock() - ago_ms

    async def vanish(self, ref: Ref) -> None:
        self.log._metas.pop(ref)
        self.log._logs.pop(ref.conversation)

    async def close(self) -> None:
        await self.log.close()


class RedisCase:
    def __init__(self, url: str) -> None:
        self.log = RedisLog.connect(url)

    async def expire(self, ref: Ref, ago_ms: int = 1) -> None:
        seconds, micros = await self.log._client.time()
        ended = seconds * 1000 + micros // 1000 - ago_ms
        await self.log._client.hset(append_keys(ref)[1], "lease", ended)

    async def vanish(self, ref: Ref) -> None:
        await self.log._client.delete(*append_keys(ref))

    async def close(self) -> None:
        await self.log.close()


@pytest.fixture(params=["memory", "redis"])
async def case(request: pytest.FixtureRequest) -> AsyncIterator[MemoryCase | RedisCase]:
    made = MemoryCase() if request.param == "memory" else RedisCase(request.getfixturevalue("redis_url"))
    yield made
    await made.close()


@pytest.fixture
def log(case: MemoryCase | RedisCase) -> Log:
    return case.log


async def test_a_snapshot_equals_the_fold_of_the_log(log: Log) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START, *texts("Hel", "lo 🌍\n")))
    await write(log, writer.batch(ReasoningDelta("hm"), ToolDelta("c1", '{"a":', "look"), ToolDelta("c1", "1}")))
    await write(log, writer.batch(BlockView(ref.gen, 3, 0, "<p>Hello</p>", sealed=False, length=8)))
    await write(log, writer.batch(*texts("more"), Usage("upstream", 3, 5)))
    assert await stored(log, ref) == await folded(log, ref)
    await write(log, writer.batch(BlockView(ref.gen, 8, 0, "<p>Hello more</p>", sealed=True, length=12)))
    snapshot = await stored(log, ref)
    assert snapshot == await folded(log, ref)
    assert (snapshot.text, snapshot.state, snapshot.shown) == ("Hello 🌍\nmore", State.RUNNING, 12)


async def test_of_what_ended_only_the_log_stays(log: Log) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START, *texts("Hello"), DONE))
    assert await absent(log, ref)
    whole = await folded(log, ref)
    assert (whole.text, whole.state) == ("Hello", State.COMPLETED)


async def test_a_retried_batch_is_written_once(log: Log) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    batch = writer.batch(START, *texts("a", "b"))
    await write(log, batch)
    assert (await write(log, batch)).seq == 3
    assert (await stored(log, ref)).text == "ab"


async def test_a_retried_terminal_batch_is_answered_as_written(log: Log) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START, *texts("a")))
    batch = writer.batch(DONE)
    first = await write(log, batch)
    assert await write(log, batch) == first


async def test_nothing_follows_the_terminal_event(log: Log) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START, DONE))
    late = Writer(ref, writer.attempt, 2, State.RUNNING)
    (answer,) = await log.append([late.batch(*texts("x"))])
    assert isinstance(answer, Fenced)
    assert (await folded(log, ref)).text == ""


async def test_a_batch_beyond_the_next_seq_is_refused_and_says_what_is_stored(log: Log) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START))
    writer.batch(*texts("lost"))
    (answer,) = await log.append([writer.batch(*texts("after"))])
    assert isinstance(answer, LogLost)
    assert answer.stored_seq == 1


async def test_a_held_generation_cannot_be_claimed(log: Log) -> None:
    ref = new_ref()
    await claimed(log, ref)
    assert not (await log.claim(ref, 0)).granted


async def test_a_driver_whose_lease_was_taken_over_writes_nothing(case: MemoryCase | RedisCase) -> None:
    log, ref = case.log, new_ref()
    zombie = await claimed(log, ref)
    await write(log, zombie.batch(START, *texts("first")))
    await case.expire(ref)
    claim = await log.claim(ref, 0)
    assert (claim.granted, claim.attempt, claim.seq) == (True, 2, 2)
    for batch in (zombie.batch(*texts("late")), zombie.batch(), zombie.everything()):
        (answer,) = await log.append([batch])
        assert isinstance(answer, Fenced)
    assert (await stored(log, ref)).text == "first"


async def test_an_append_renews_the_lease(case: MemoryCase | RedisCase) -> None:
    log, ref = case.log, new_ref()
    writer = await claimed(log, ref)
    await case.expire(ref)
    await write(log, writer.batch(START))
    assert not (await log.claim(ref, 0)).granted


async def test_a_claim_rises_above_what_the_database_knows(log: Log) -> None:
    assert (await log.claim(new_ref(), 7)).attempt == 8


async def test_an_ended_generation_cannot_be_claimed(case: MemoryCase | RedisCase) -> None:
    log, ref = case.log, new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START, DONE))
    await case.expire(ref)
    claim = await log.claim(ref, 0)
    assert (claim.granted, claim.state) == (False, State.COMPLETED)


async def test_a_vanished_log_is_reported_and_can_be_written_again(case: MemoryCase | RedisCase) -> None:
    log, ref = case.log, new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START, *texts("kept ")))
    await case.vanish(ref)
    (answer,) = await log.append([writer.batch(*texts("text"))])
    assert isinstance(answer, LogLost)
    assert answer.stored_seq == -1
    await write(log, writer.everything())
    assert (await stored(log, ref)).text == "kept text"
    assert await stored(log, ref) == await folded(log, ref)


async def test_a_newer_driver_writes_over_what_a_zombie_restored(case: MemoryCase | RedisCase) -> None:
    log, ref = case.log, new_ref()
    zombie = await claimed(log, ref)
    await write(log, zombie.batch(START, *texts("old")))
    newer = Writer(ref, 2)
    newer.batch(START, *texts("new"))
    await case.vanish(ref)
    await write(log, zombie.everything())
    await write(log, newer.everything())
    assert (await stored(log, ref)).text == "new"
    (answer,) = await log.append([zombie.batch(*texts("late"))])
    assert isinstance(answer, Fenced)


async def test_a_cancel_is_told_to_the_next_append_with_its_first_asker(log: Log) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START))
    await log.cancel(ref, "alice")
    await log.cancel(ref, "bob")
    answer = await write(log, writer.batch())
    assert answer.cancel is not None
    assert answer.cancel.by == "alice"


async def test_a_cancel_before_any_claim_is_told_to_the_claim(log: Log) -> None:
    ref = new_ref()
    await log.cancel(ref, "alice")
    claim = await log.claim(ref, 0)
    assert claim.granted
    assert claim.cancel is not None


async def test_a_cancel_after_the_end_says_that_it_ended(log: Log) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START, Cancelled("user", "closed", 3, 0)))
    answer = await log.cancel(ref, "alice")
    assert (answer.granted, answer.state) == (False, State.CANCELLED)


async def test_a_cancel_is_told_to_readers_once(log: Log) -> None:
    ref = new_ref()
    await claimed(log, ref)
    asked = (await log.cancel(ref, "user")).cancel
    await log.cancel(ref, "operator")
    (logged,) = await log.range(ref.conversation, "0-0", "99999999999999-0", 10)
    assert asked is not None
    assert view_from_dict(json.loads(logged.entry.payload)) == CancelView(ref.gen, asked.at, "user")


async def test_a_snapshot_tells_of_an_open_cancel_request(log: Log) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START))
    asked = (await log.cancel(ref, "user")).cancel
    assert asked is not None
    assert (await stored(log, ref)).cancel_requested == {"at": asked.at, "by": "user"}
    await write(log, writer.batch(Cancelled("user", "closed", 3, 0)))
    assert (await folded(log, ref)).cancel_requested is None


async def test_a_snapshot_tells_of_a_request_that_came_before_any_driver(log: Log) -> None:
    ref = new_ref()
    await log.cancel(ref, "guest")
    assert (await stored(log, ref)).cancel_requested["by"] == "guest"  # type: ignore[index]


async def test_a_lease_tells_whether_its_driver_knows_of_the_cancel(case: MemoryCase | RedisCase) -> None:
    ref = new_ref()
    writer = await claimed(case.log, ref)
    request = (await case.log.cancel(ref, "user")).cancel
    assert request is not None
    (before,) = await case.log.leases([ref])
    while (await case.log.position(ref.conversation))[1] == request.at:
        pass  # The log's clock counts milliseconds; what comes within one proves nothing.
    await write(case.log, writer.batch(START))
    (after,) = await case.log.leases([ref])
    assert before is not None
    assert after is not None
    assert (before.knows_of(request), after.knows_of(request)) == (False, True)


async def test_what_was_removed_is_gone_and_its_driver_fenced(log: Log) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START, *texts("a")))
    await log.remove(ref.conversation, [ref])
    answers = await log.append([writer.batch(*texts("b")), writer.everything()])
    assert [type(answer) for answer in answers] == [Fenced, Fenced]
    assert await log.range(ref.conversation, "0-0", "99999999999999-0", 10) == []
    assert await absent(log, ref)


async def test_what_was_removed_cannot_be_claimed_again(log: Log) -> None:
    ref = new_ref()
    await log.remove(ref.conversation, [ref])
    assert not (await log.claim(ref, 0)).granted


async def test_a_removal_is_told_to_its_driver(log: Log) -> None:
    ref = new_ref()
    listener = log.cancellations()
    heard = asyncio.ensure_future(anext(listener))
    while not heard.done():
        await log.remove(ref.conversation, [ref])
        await asyncio.wait({heard}, timeout=0.05)
    assert heard.result() == ref.gen
    await listener.aclose()  # type: ignore[attr-defined]


async def test_cancellations_are_published(log: Log) -> None:
    ref = new_ref()
    listener = log.cancellations()
    heard = asyncio.ensure_future(anext(listener))
    while not heard.done():
        await log.cancel(ref, "alice")
        await asyncio.wait({heard}, timeout=0.05)
    assert heard.result() == ref.gen
    await listener.aclose()  # type: ignore[attr-defined]


async def test_entries_of_several_generations_share_one_order(log: Log) -> None:
    one = new_ref(1)
    two = new_ref(2, one.conversation)
    first, second = await claimed(log, one), await claimed(log, two)
    await log.append([first.batch(START), second.batch(START)])
    await log.append([second.batch(*texts("b")), first.batch(*texts("a"))])
    logged = await log.range(one.conversation, "0-0", "99999999999999-0", 100)
    assert [x.entry.number for x in logged] == [1, 2, 2, 1]
    assert logged == sorted(logged, key=lambda x: cursor_key(x.cursor))


async def test_one_refused_batch_leaves_its_neighbours_written(log: Log) -> None:
    good, bad = new_ref(), new_ref()
    writer = await claimed(log, good)
    refused, written = await log.append([Writer(bad, 1).batch(START), writer.batch(START)])
    assert isinstance(refused, LogLost)
    assert not isinstance(written, Exception)


async def test_a_tail_gets_what_comes_after_its_cursors(log: Log) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START))
    cursor, _ = await log.position(ref.conversation)
    tail = log.tail()
    waiting = asyncio.ensure_future(tail.read({ref.conversation: cursor}, 5_000))
    await write(log, writer.batch(*texts("new")))
    (logged,) = (await waiting)[ref.conversation]
    assert logged.entry.payload == "new"
    await tail.close()


async def test_an_interrupted_tail_returns_and_reads_again(log: Log) -> None:
    ref = new_ref()
    tail = log.tail()
    waiting = asyncio.ensure_future(tail.read({ref.conversation: "0-0"}, 60_000))
    while not waiting.done():
        await tail.interrupt()
        await asyncio.wait({waiting}, timeout=0.02)
    assert waiting.result() == {}
    await log.announce(ref.conversation, turn_notice({"id": "t"}))
    assert (await tail.read({ref.conversation: "0-0"}, 5_000))[ref.conversation]
    await tail.close()


async def test_a_tail_waits_no_longer_than_told(log: Log) -> None:
    tail = log.tail()
    assert await tail.read({new_ref().conversation: "0-0"}, 30) == {}
    await tail.close()


async def test_a_notice_reaches_readers_as_it_was_written(log: Log) -> None:
    ref = new_ref()
    cursor = await log.announce(ref.conversation, turn_notice({"id": "t1"}))
    (logged,) = await log.range(ref.conversation, "0-0", cursor, 10)
    assert wire("", logged) == '{"v":1,"type":"turn","turn":{"id":"t1"}}'


async def test_an_unknown_generation_is_absent_from_a_snapshot(log: Log) -> None:
    assert await absent(log, new_ref())


async def test_an_empty_log_is_at_just_now(log: Log) -> None:
    ref = new_ref()
    position, now = await log.position(ref.conversation)
    assert cursor_key(position) == (now - 1, 0)
    assert cursor_key((await log.snapshot(ref.conversation, [])).cursor) >= cursor_key(position)
    assert cursor_key(await log.announce(ref.conversation, "{}")) > cursor_key(position)


async def test_snapshot_and_position_name_the_newest_entry(log: Log) -> None:
    ref = new_ref()
    written = await write(log, (await claimed(log, ref)).batch(START))
    position, _ = await log.position(ref.conversation)
    assert position == written.cursor == (await log.snapshot(ref.conversation, [ref])).cursor


async def test_leases_show_who_drives(case: MemoryCase | RedisCase) -> None:
    log, ref = case.log, new_ref()
    await claimed(log, ref)
    lease, nothing = await log.leases([ref, new_ref()])
    assert nothing is None
    assert lease is not None
    assert 0 < lease.expires_at - lease.now <= LEASE_MS


async def test_a_lease_from_before_the_clock_stepped_back_an_hour_holds_nobody_off(
    case: MemoryCase | RedisCase,
) -> None:
    log, ref = case.log, new_ref()
    writer = await claimed(log, ref)
    await case.expire(ref, -3_600_000)
    (lease,) = await log.leases([ref])
    assert lease is not None
    assert not lease.runs
    await write(log, writer.batch(START))  # Its driver lives, and sets it right.
    assert not (await log.claim(ref, 0)).granted
    await case.expire(ref, -3_600_000)
    assert (await log.claim(ref, 0)).granted


def test_a_cursor_that_the_log_gave_is_not_to_come_though_its_clock_stepped_back() -> None:
    position = position_of("5000-3", now=1_000)
    assert not is_to_come(position, position, 1_000)
    assert is_to_come("5000-4", position, 1_000)
    assert is_to_come("2000-0", position_of("900-0", now=1_000), 1_000)
    assert not is_to_come("950-0", position_of("900-0", now=1_000), 1_000)


def test_an_entry_of_a_newer_version_can_be_read_and_skipped() -> None:
    assert entry_from_log("1 1 5 z", "?").kind is Kind.UNKNOWN
