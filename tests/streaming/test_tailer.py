"""One blocking read for all readers of a process: who comes, who goes, and what no reader may stumble over."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from streaming.follower import Follower
from streaming.log.memory import MemoryLog
from streaming.log.redis import RedisLog
from streaming.log.redis_format import log_key
from tests.streaming.fakes import until
from tests.streaming.logs import START, claimed, new_ref, stored, texts, write
from tests.streaming.process import Clock
from tests.streaming.reader import Reader, reading, tailing


async def test_a_reader_that_leaves_while_it_joins_leaves_nothing_behind(clock: Clock) -> None:
    """It waits there until the read under way has been interrupted."""
    log = MemoryLog(clock)
    async with tailing(log) as tailer, reading(tailer, log, new_ref()):
        tailer._tail.interrupt = forever  # type: ignore[method-assign]
        ref = new_ref()
        follower = Follower(tailer, log, ref.conversation, (await log.position(ref.conversation))[0], {1: ref.gen})
        joining = asyncio.create_task(follower.__aenter__())
        await until(lambda: ref.conversation in tailer._watched)
        joining.cancel()
        await asyncio.gather(joining, return_exceptions=True)
        assert ref.conversation not in tailer._watched


async def forever() -> None:
    await asyncio.Event().wait()


async def test_a_reader_that_joins_just_after_a_start_is_told_who_it_was(clock: Clock) -> None:
    """What follows the start reaches it before it has read the start itself."""
    log, ref = MemoryLog(clock), new_ref()
    cursor, _ = await log.position(ref.conversation)
    writer = await claimed(log, ref)
    await write(log, writer.batch(START))
    async with tailing(log) as tailer, Follower(tailer, log, ref.conversation, cursor, {}) as follower:
        await write(log, writer.batch(*texts("a")))
        await until(lambda: follower._early)
        reader = Reader(ref)
        async for frame in follower.frames():
            reader.apply(frame)
            if reader.snapshot.text:
                break
    assert (reader.types, reader.snapshot.text) == (["events"], "a")


async def test_an_entry_of_a_newer_version_stops_no_reader(redis_url: str) -> None:
    log, ref = RedisLog.connect(redis_url), new_ref()
    async with tailing(log) as tailer, reading(tailer, log, ref) as reader:
        writer = await claimed(log, ref)
        await write(log, writer.batch(START, *texts("a")))
        await log._client.xadd(log_key(ref.conversation), {"1 1 z": "?", "s": "9"})
        await write(log, writer.batch(*texts("b")))
        await until(lambda: reader.snapshot.text == "ab")
    await log.close()


async def test_a_reader_is_served_though_the_logs_clock_stepped_back(clock: Clock) -> None:
    log, ref = MemoryLog(clock), new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START, *texts("a")))
    newest, _ = await log.position(ref.conversation)
    clock.offset -= 60_000
    async with tailing(log) as tailer, reading(tailer, log, ref, newest) as reader:
        reader.snapshot = await stored(log, ref)  # It has synced.
        await write(log, writer.batch(*texts("b")))
        await until(lambda: reader.snapshot.text == "ab")


async def test_readers_join_while_redis_takes_no_writes(free_redis: Any, tmp_path: Path) -> None:
    with free_redis(tmp_path) as server:
        log, ref = RedisLog.connect(server.url), new_ref()
        await write(log, (await claimed(log, ref)).batch(START))
        await log._client.config_set("maxmemory", 1)
        async with tailing(log) as tailer, Follower(tailer, log, ref.conversation, "0-0", {1: ref.gen}) as follower:
            assert tailer._watched[ref.conversation].sinks == [follower._sink]
        await log.close()
