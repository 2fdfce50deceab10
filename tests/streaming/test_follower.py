"""Followers read from any cursor, without gap, without doubling, and with bounded memory."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming import follower as follower_module
from streaming import tailer as tailer_module
from streaming.events import TextDelta
from streaming.follower import MAX_BEHIND_BYTES, Follower
from streaming.lifecycle import State
from streaming.log.codec import turn_notice
from streaming.log.memory import MemoryLog
from streaming.log.ports import RETENTION_MS, Log, Ref
from streaming.log.redis import RedisLog
from streaming.snapshot import Snapshot
from streaming.tailer import Tailer
from tests.streaming.fakes import until
from tests.streaming.logs import DONE, START, Writer, claimed, new_ref, texts, write
from tests.streaming.process import Clock
from tests.streaming.reader import Reader, reading, tailing


@pytest.fixture(params=["memory", "redis"])
async def log(request: pytest.FixtureRequest, clock: Clock) -> AsyncIterator[Log]:
    made: Log = (
        MemoryLog(clock) if request.param == "memory" else RedisLog.connect(request.getfixturevalue("redis_url"))
    )
    yield made
    await made.close()


@pytest.fixture
async def tailer(log: Log) -> AsyncIterator[Tailer]:
    async with tailing(log) as made:
        yield made


async def test_a_follower_sees_what_is_written_while_it_reads(log: Log, tailer: Tailer) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    async with reading(tailer, log, ref) as reader:
        await write(log, writer.batch(START, *texts("Hel")))
        await until(lambda: reader.snapshot.text == "Hel")
        await write(log, writer.batch(*texts("lo"), DONE))
        await until(lambda: reader.snapshot.text == "Hello")
        assert reader.snapshot.seq == 4


async def test_a_follower_that_comes_later_gets_only_what_lies_after_its_cursor(log: Log, tailer: Tailer) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    first = await write(log, writer.batch(START, *texts("a")))
    await write(log, writer.batch(*texts("b")))
    async with reading(tailer, log, ref, first.cursor) as reader:
        reader.snapshot = replace(reader.snapshot, text="a", seq=2, state=State.RUNNING)
        await write(log, writer.batch(*texts("c")))
        await until(lambda: reader.snapshot.text == "abc")
    assert reader.frames[0]["events"][0]["seq"] == 3


async def test_two_followers_of_one_conversation_see_the_same(log: Log, tailer: Tailer) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    async with reading(tailer, log, ref) as one, reading(tailer, log, ref) as two:
        for word in ("a", "b", "c"):
            await write(log, writer.batch(*([START] if word == "a" else []), *texts(word)))
        await until(lambda: one.snapshot.text == two.snapshot.text == "abc")


async def test_what_is_written_while_a_follower_joins_reaches_it_at_once(log: Log, tailer: Tailer) -> None:
    quiet, joined, position = await claimed(log, new_ref()), await claimed(log, new_ref()), log.position

    async def just_before_a_write(conversation: str) -> tuple[str, int]:
        found = await position(conversation)
        if conversation == joined.ref.conversation and not joined.entries:
            await write(log, joined.batch(START))
            await write(log, quiet.batch(START))
            await until(lambda: other.snapshot.seq == 1)  # The tailer has read beyond both.
        return found

    log.position = just_before_a_write  # type: ignore[method-assign]
    cursor, _ = await position(joined.ref.conversation)
    async with (
        asyncio.timeout(tailer_module.BLOCK_MS / 1000 / 2),
        reading(tailer, log, quiet.ref) as other,
        reading(tailer, log, joined.ref, cursor) as reader,
    ):
        await until(lambda: reader.snapshot.seq == 1)


async def test_a_cursor_beyond_the_log_is_told_to_sync(log: Log, tailer: Tailer) -> None:
    ref = new_ref()
    await write(log, (await claimed(log, ref)).batch(START))
    async with reading(tailer, log, ref, "99999999999999-0") as reader:
        await until(lambda: reader.types == ["resync"])


async def test_a_cursor_older_than_the_log_keeps_is_told_to_sync(tailer: Tailer, log: Log, clock: Clock) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START))
    clock.offset += RETENTION_MS
    async with reading(tailer, log, ref, "1000-0") as reader:
        await until(lambda: reader.types == ["resync"])


async def test_a_reader_ahead_of_the_tailer_is_served(log: Log, tailer: Tailer, clock: Clock) -> None:
    ref = new_ref()
    async with reading(tailer, log, ref):
        clock.offset += 10
        later, _ = await log.position(ref.conversation)
        async with reading(tailer, log, ref, later) as reader:
            await write(log, (await claimed(log, ref)).batch(START))
            await until(lambda: reader.snapshot.seq == 1)
        assert "resync" not in reader.types


async def test_a_notice_is_handed_on(log: Log, tailer: Tailer) -> None:
    ref = new_ref()
    async with reading(tailer, log, ref) as reader:
        await log.announce(ref.conversation, turn_notice({"id": "t"}))
        await until(lambda: reader.types == ["events"])


async def test_silence_is_broken_by_pings(log: Log, tailer: Tailer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower_module, "HEARTBEAT_S", 0.02)
    async with reading(tailer, log, new_ref()) as reader:
        await until(lambda: reader.types[:2] == ["ping", "ping"])


async def test_a_generation_of_unknown_name_makes_the_reader_sync(log: Log, tailer: Tailer) -> None:
    ref = new_ref()
    stranger = Ref(ref.conversation, 9, ref.gen)
    writer = await claimed(log, stranger)
    await write(log, writer.batch(START))
    position, _ = await log.position(ref.conversation)
    async with reading(tailer, log, ref, position) as reader:
        await write(log, writer.batch(*texts("who?")))
        await until(lambda: reader.types == ["resync"])


async def test_a_start_introduces_its_generation(log: Log, tailer: Tailer) -> None:
    ref = new_ref()
    later = new_ref(2, ref.conversation)
    async with reading(tailer, log, ref) as reader:
        reader.snapshot = Snapshot(later.gen)
        await write(log, (await claimed(log, later)).batch(START, *texts("hi")))
        await until(lambda: reader.snapshot.text == "hi")


async def test_a_follower_far_behind_gets_a_snapshot(log: Log, tailer: Tailer) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    first = await write(log, writer.batch(START))
    big = "x" * 1000
    for _ in range(MAX_BEHIND_BYTES // 1000 + 10):
        await write(log, writer.batch(TextDelta(big)))
    async with reading(tailer, log, ref, first.cursor) as reader:
        await until(lambda: reader.types == ["snapshot"])
        await write(log, writer.batch(*texts("end")))
        await until(lambda: reader.snapshot.text.endswith("end"))
        assert len(reader.snapshot.text) == (MAX_BEHIND_BYTES // 1000 + 10) * 1000 + 3


async def test_a_reader_that_acknowledges_nothing_is_sent_no_more_and_loses_nothing(log: Log, tailer: Tailer) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    reader = Reader(ref)
    async with Follower(
        tailer,
        log,
        ref.conversation,
        (await log.position(ref.conversation))[0],
        {1: ref.gen},
        max_unacknowledged_bytes=1_000,
    ) as follower:
        frames = follower.frames()
        await write(log, writer.batch(START, TextDelta("x" * 2_000)))
        reader.apply(await anext(frames))
        waiting = asyncio.ensure_future(anext(frames))
        for word in ("a", "b"):
            await write(log, writer.batch(*texts(word)))
        await until(lambda: len(follower._backlog._encoded) == 2)
        assert not waiting.done()
        follower.acknowledge(reader.cursor)
        reader.apply(await waiting)
        assert reader.snapshot.text == "x" * 2_000 + "ab"
        await frames.aclose()  # type: ignore[attr-defined]


async def test_a_reader_silent_for_too_long_is_let_go(
    log: Log, tailer: Tailer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower_module, "ACKNOWLEDGE_S", 0.02)
    ref = new_ref()
    writer = await claimed(log, ref)
    async with Follower(
        tailer,
        log,
        ref.conversation,
        (await log.position(ref.conversation))[0],
        {1: ref.gen},
        max_unacknowledged_bytes=10,
    ) as follower:
        await write(log, writer.batch(START))
        frames = follower.frames()
        await anext(frames)
        await write(log, writer.batch(*texts("a")))
        assert [frame async for frame in frames] == []


async def test_a_redis_that_restarts_interrupts_no_follower(tmp_path: Any, free_redis: Any) -> None:
    with free_redis(tmp_path) as server:
        log = RedisLog.connect(server.url)
        ref = new_ref()
        writer = await claimed(log, ref)
        async with tailing(log) as tailer, reading(tailer, log, ref) as reader:
            await write(log, writer.batch(START, *texts("a")))
            await until(lambda: reader.snapshot.text == "a")
            server.kill()
            server.start()
            await until_written(log, writer, "b")
            await until(lambda: reader.snapshot.text == "ab")
        await log.close()


async def until_written(log: Log, writer: Writer, word: str) -> None:
    batch = writer.batch(*texts(word))
    while True:
        with contextlib.suppress(Exception):
            await write(log, batch)
            return
        await asyncio.sleep(0.01)


@given(
    words=st.lists(st.text(alphabet="ab🌍", min_size=1, max_size=3), min_size=1, max_size=12),
    cuts=st.sets(st.integers(0, 12)),
)
def test_a_reader_that_reconnects_anywhere_has_everything_once(words: list[str], cuts: set[int]) -> None:
    asyncio.run(_reconnect(words, cuts))


async def _reconnect(words: list[str], cuts: set[int]) -> None:
    log = MemoryLog(Clock())
    ref = new_ref()
    writer = await claimed(log, ref)
    reader = Reader(ref)
    reader.cursor, _ = await log.position(ref.conversation)
    await write(log, writer.batch(START))
    pieces = _pieces(words, cuts)
    async with tailing(log) as tailer:
        for piece in pieces:
            async with Follower(tailer, log, ref.conversation, reader.cursor, {1: ref.gen}) as follower:
                for word in piece:
                    await write(log, writer.batch(*texts(word)))
                frames = follower.frames()
                while reader.snapshot.seq < writer.seq:
                    reader.apply(await anext(frames))
                await frames.aclose()  # type: ignore[attr-defined]
    assert reader.snapshot.text == "".join(words)
    assert "resync" not in reader.types


def _pieces(words: list[str], cuts: set[int]) -> Iterator[list[str]]:
    edges = [0, *sorted(cut for cut in cuts if cut < len(words)), len(words)]
    return (words[start:end] for start, end in itertools.pairwise(edges))
