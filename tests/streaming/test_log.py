"""One contract for every log: what memory promises, the scripts in Redis must keep."""

from __future__ import annotations

from streaming.errors import Fenced, LogLost
from streaming.events import (
    BlockView,
    ReasoningDelta,
    ToolDelta,
    Usage,
)
from streaming.frames import cursor_key
from streaming.lifecycle import State
from streaming.log.codec import is_to_come, position_of
from streaming.log.ports import LEASE_MS, Log
from tests.streaming.cases import MemoryCase, RedisCase
from tests.streaming.logs import DONE, START, Writer, absent, claimed, folded, new_ref, stored, texts, write


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
    await write(log, batch)
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
