"""What only a log in Redis can suffer: parts that vanish, a server that is away or forgets its scripts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from streaming.errors import LogLost, LogUnavailable
from streaming.events import BlockView, ReasoningDelta, TextDelta, Usage
from streaming.log.ports import Appended, Kind
from streaming.log.redis import APPENDED_TOGETHER, ENTRIES_TOGETHER, RedisLog, _together
from streaming.log.redis_format import COMPRESSED_FROM, WAKE, append_keys, log_key, logged_of
from tests.streaming.logs import DONE, START, Writer, absent, claimed, folded, new_ref, stored, texts, write

PARTS = ("meta", "text", "reasoning", "facts", "blocks")
A_BLOCK = BlockView("", 3, 0, "<p>a</p>", sealed=True, length=1)


@pytest.fixture
async def redis_log(redis_url: str) -> AsyncIterator[RedisLog]:
    """Only in Redis can a part of a generation vanish: its keys are evicted or deleted one by one."""
    made = RedisLog.connect(redis_url)
    yield made
    await made.close()


async def without(log: RedisLog, part: str) -> Writer:
    """Give the writer of a generation that has lost one of its keys."""
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START, ReasoningDelta("hm"), *texts("a"), A_BLOCK))
    assert await log._client.delete(append_keys(ref)[1 + PARTS.index(part)]) == 1
    return writer


@pytest.mark.parametrize("part", PARTS)
async def test_a_generation_of_which_a_part_is_lost_is_absent_from_a_snapshot(redis_log: RedisLog, part: str) -> None:
    assert await absent(redis_log, (await without(redis_log, part)).ref)


@pytest.mark.parametrize("part", PARTS)
async def test_a_lost_part_is_noticed_by_the_next_renewal_of_the_lease(redis_log: RedisLog, part: str) -> None:
    writer = await without(redis_log, part)
    (answer,) = await redis_log.append([writer.batch()])
    assert isinstance(answer, LogLost)
    assert answer.stored_seq == -1


@pytest.mark.parametrize("part", PARTS)
async def test_a_lost_part_is_whole_when_everything_was_written_again(redis_log: RedisLog, part: str) -> None:
    writer = await without(redis_log, part)
    more = [ReasoningDelta("so"), TextDelta("b"), Usage("estimated"), BlockView("", 6, 1, "<p>b</p>", True, 2)]
    (answer,) = await redis_log.append([writer.batch(*more)])
    assert isinstance(answer, LogLost)
    await write(redis_log, writer.everything())
    assert await stored(redis_log, writer.ref) == await folded(redis_log, writer.ref)


async def test_text_that_redis_wrote_twice_is_noticed_by_the_next_write(redis_log: RedisLog) -> None:
    """Redis 7.0 does so when it is restarted twice after a loss of power: what it cut off comes again."""
    writer = await claimed(redis_log, new_ref())
    await write(redis_log, writer.batch(START, *texts("a")))
    await redis_log._client.append(append_keys(writer.ref)[2], "a")
    (answer,) = await redis_log.append([writer.batch(*texts("b"))])
    assert isinstance(answer, LogLost)
    await write(redis_log, writer.everything())
    assert (await stored(redis_log, writer.ref)).text == "ab"


async def test_a_log_that_cannot_be_reached_says_so(tmp_path: Any) -> None:
    log = RedisLog.connect(f"unix://{tmp_path}/none.sock")
    with pytest.raises(LogUnavailable):
        await log.append([Writer(new_ref(), 1).batch(START)])
    await log.close()


async def test_many_commands_at_once_wait_their_turn(redis_url: str) -> None:
    log = RedisLog.connect(redis_url)
    await asyncio.gather(*(log.position(new_ref().conversation) for _ in range(300)))
    await log.close()


async def test_scripts_forgotten_by_the_server_are_loaded_again(redis_url: str) -> None:
    log = RedisLog.connect(redis_url)
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START))
    await log._client.script_flush()
    await write(log, writer.batch(*texts("a")))
    await log._client.script_flush()
    await log.cancel(ref, "alice")
    assert (await stored(log, ref)).text == "a"
    await log.close()


async def moved(log: RedisLog) -> dict[str, int]:
    """Give the bytes that Redis has received so far, and those that its append-only file has."""
    info = await log._client.info("everything")
    return {"received": info["total_net_input_bytes"], "appended": info["aof_current_size"]}


async def test_the_bytes_of_a_token_that_is_written_alone_are_bounded(redis_log: RedisLog) -> None:
    """Three tokens go together at 100 a second (appender.py): 200 and 250 bytes for each, with what readers ask."""
    await redis_log._client.config_set("appendonly", "yes")
    try:
        while (await redis_log._client.info("persistence"))["aof_rewrite_in_progress"]:
            await asyncio.sleep(0.01)
        writer = await claimed(redis_log, new_ref())
        await write(redis_log, writer.batch(START, *texts("first ")))
        before, idle = await moved(redis_log), await moved(redis_log)
        for _ in range(100):
            await write(redis_log, writer.batch(*texts("token ")))
        after = await moved(redis_log)
    finally:
        await redis_log._client.config_set("appendonly", "no")
    # Asking costs some bytes too.
    received = (after["received"] - idle["received"] - (idle["received"] - before["received"])) / 100
    assert received < 250
    assert (after["appended"] - idle["appended"]) / 100 < 480


async def test_what_ended_goes_after_its_retention(redis_url: str) -> None:
    log = RedisLog.connect(redis_url)
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START, TextDelta("a"), DONE))
    _, meta, *rest = append_keys(ref)
    for key in (log_key(ref.conversation), meta):
        assert 0 < await log._client.pttl(key) <= 15 * 60 * 1000
    assert await log._client.exists(*rest) == 0
    await log.close()


@pytest.mark.parametrize(
    "fields",
    [
        (b"1 1 z", b"?", b"s", b"9"),
        (b"1 1 z", b"x\x01\xff", b"s", b"9"),
        (b"1 1 b", b"x\x01\xff", b"s", b"9 0"),
        (b"1 1 t", b"?", b"s", b"9 0"),
        (b"1 1 2 t", b"?", b"s", b"9"),
        (b"1 1 t", b"?", b"s", b"9", b"more", b"?"),
        (b"1 1 t", b"?"),
        (b"h", b"1 1 9 z", b"x", b"?"),
    ],
)
def test_an_entry_of_a_newer_version_can_be_read_and_skipped(fields: tuple[bytes, ...]) -> None:
    assert logged_of(b"1-0", fields).entry.kind is Kind.UNKNOWN


async def test_a_generation_whose_keys_redis_refuses_holds_up_no_other(redis_log: RedisLog) -> None:
    one, other = await claimed(redis_log, new_ref()), await claimed(redis_log, new_ref())
    await write(redis_log, one.batch(START, *texts("a")))
    text = append_keys(one.ref)[2]
    await redis_log._client.delete(text)
    await redis_log._client.rpush(text, "of another type")
    refused, written = await redis_log.append([one.batch(*texts("b")), other.batch(START, *texts("c"))])
    assert isinstance(refused, LogUnavailable)
    assert "WRONGTYPE" in str(refused)
    assert isinstance(written, Appended)
    assert (await stored(redis_log, other.ref)).text == "c"


async def test_more_batches_than_go_together_are_answered_in_their_order(redis_log: RedisLog) -> None:
    writers = [await claimed(redis_log, new_ref()) for _ in range(APPENDED_TOGETHER + 1)]
    batches = [writer.batch(START, *texts("a" * place)) for place, writer in enumerate(writers)]
    assert all(isinstance(answer, Appended) for answer in await redis_log.append(batches))
    assert (await stored(redis_log, writers[-1].ref)).text == "a" * APPENDED_TOGETHER


async def test_a_tail_is_woken_though_the_key_that_it_waits_on_was_evicted(redis_log: RedisLog) -> None:
    writer, tail = await claimed(redis_log, new_ref()), redis_log.tail()
    await write(redis_log, writer.batch(START))
    await tail.wait(1)
    await redis_log._client.delete(WAKE)
    waiting = asyncio.ensure_future(tail.wait(60_000))
    await write(redis_log, writer.batch(*texts("a")))
    await waiting
    await tail.close()


async def test_a_tail_waits_anew_after_the_clock_of_redis_stepped_back(redis_log: RedisLog) -> None:
    writer, tail = await claimed(redis_log, new_ref()), redis_log.tail()
    tail._woken = b"99999999999999-0"  # It was woken before the step.
    await tail.wait(1)
    await tail.wait(1)  # It looks up where it is.
    waiting = asyncio.ensure_future(tail.wait(60_000))
    await write(redis_log, writer.batch(START))
    await waiting
    await tail.close()


@pytest.mark.parametrize("length", [1, COMPRESSED_FROM, 100_000])
async def test_a_block_view_of_any_length_is_read_as_it_was_written(redis_log: RedisLog, length: int) -> None:
    writer = await claimed(redis_log, new_ref())
    block = BlockView("", 2, 0, "<p>é\u2028</p>" * length, True, 1)
    await write(redis_log, writer.batch(START, *texts("a"), block))
    assert await stored(redis_log, writer.ref) == await folded(redis_log, writer.ref)
    assert (await stored(redis_log, writer.ref)).blocks[0].html == block.html


async def test_a_long_block_view_takes_little_of_redis(redis_log: RedisLog) -> None:
    writer = await claimed(redis_log, new_ref())
    await write(redis_log, writer.batch(START, BlockView("", 1, 0, "<p>one</p>" * 10_000, True, 1)))
    assert await redis_log._client.memory_usage(log_key(writer.ref.conversation), samples=0) < 10_000


async def test_what_redis_refused_in_the_midst_of_a_batch_is_not_written_twice(redis_log: RedisLog) -> None:
    writer = await claimed(redis_log, new_ref())
    await write(redis_log, writer.batch(START))
    blocks = append_keys(writer.ref)[5]
    await redis_log._client.rpush(blocks, "of another type")
    batch = writer.batch(*texts("a"), BlockView("", 2, 0, "<p>a</p>", True, 1))
    (answer,) = await redis_log.append([batch])
    assert isinstance(answer, LogUnavailable)
    await redis_log._client.delete(blocks)
    await write(redis_log, batch)
    assert (await stored(redis_log, writer.ref)).text == "a"


def test_what_is_written_again_goes_in_scripts_of_bounded_length() -> None:
    writers = [Writer(new_ref(), 1) for _ in range(300)]
    batches = [writer.batch(START, *texts(*"a" * (place % 90))) for place, writer in enumerate(writers)]
    groups = list(_together(batches))
    assert [batch for group in groups for batch in group] == batches
    assert max(map(len, groups)) <= APPENDED_TOGETHER
    assert max(sum(len(batch.entries) for batch in group) for group in groups) <= ENTRIES_TOGETHER


def test_a_batch_longer_than_a_script_may_be_goes_alone() -> None:
    one, long, other = (Writer(new_ref(), 1) for _ in range(3))
    batches = [one.batch(START), long.batch(START, *texts(*"a" * ENTRIES_TOGETHER)), other.batch(START)]
    assert list(_together(batches)) == [[batch] for batch in batches]
