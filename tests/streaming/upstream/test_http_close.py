from __future__ import annotations

import asyncio
import gc
import zlib
from pathlib import Path

import pytest

from streaming.errors import UpstreamError
from streaming.upstream.http import HttpCall
from tests.streaming.upstream.calls import chat_call, opened, run, text_of
from tests.streaming.upstream.server import DONE, GZIP, SSE, STOP, TEXT, Behaviour, holds, sends, serving

# What a person who pressed Stop is promised.
AT_ONCE_S = 0.2
GZIP_WBITS = 31  # What tells zlib to write gzip's own head.


async def test_closing_before_iteration_sends_nothing() -> None:
    async with serving(sends(SSE, STOP)) as server:
        call = chat_call(server.url)
        assert await call.close()
        with pytest.raises(UpstreamError) as caught:
            await anext(call)
    assert (caught.value.code, server.requests) == ("call_closed", [])


@pytest.mark.parametrize(
    ("scheme", "behave"),
    [("https:", holds()), ("http:", holds()), ("http:", holds(SSE)), ("http:", holds(SSE, TEXT))],
    ids=["while connecting", "before the head", "after the head", "in the body"],
)
async def test_closing_from_another_task_ends_the_connection_at_once(scheme: str, behave: Behaviour) -> None:
    async with serving(behave, reads_request=scheme == "http:") as server:
        call = chat_call(server.url.replace("http:", scheme))
        reading = asyncio.create_task(run(call))
        await server.arrived.wait()
        async with asyncio.timeout(AT_ONCE_S):
            assert await call.close()
            await server.left.wait()
            _, error = await reading
    assert error is not None
    assert error.code == "call_closed"


@pytest.mark.parametrize("behave", [holds(), holds(SSE, TEXT)], ids=["before the head", "in the body"])
async def test_a_call_that_says_closed_has_given_its_socket_back(behave: Behaviour) -> None:
    open_before = open_sockets()
    async with serving(behave) as server:
        call = chat_call(server.url)
        reading = asyncio.create_task(run(call))
        await server.arrived.wait()
        held = open_sockets()
        assert await call.close()
        assert open_sockets() < held
        await server.left.wait()
        await reading
    assert open_sockets() == open_before


async def test_closing_while_the_body_streams_keeps_what_had_arrived() -> None:
    async with serving(holds(SSE, TEXT * 3)) as server:
        call = await opened(chat_call(server.url))
        await anext(call)
        await call.close()
        chunks, error = await run(call)
    assert (text_of(chunks), error and error.code) == ("AA", "call_closed")


async def test_closing_while_another_task_waits_inside_a_compressed_body_is_proven() -> None:
    squeeze = zlib.compressobj(wbits=GZIP_WBITS)
    async with serving(holds(GZIP, squeeze.compress(TEXT) + squeeze.flush(zlib.Z_SYNC_FLUSH))) as server:
        call = await opened(chat_call(server.url))
        await anext(call)
        reading = asyncio.create_task(run(call))
        await asyncio.sleep(0)  # It begins, and has nothing to read.
        assert await call.close()
        await reading


async def test_closing_after_the_end_is_no_failure() -> None:
    async with serving(sends(SSE, TEXT, STOP, DONE)) as server:
        call = chat_call(server.url)
        assert (await run(call))[1] is None
        assert await call.close()


async def test_cancelling_the_iterating_task_ends_the_connection_at_once() -> None:
    async with serving(holds(SSE, TEXT)) as server:
        call = chat_call(server.url)
        reading = asyncio.create_task(run(call))
        await server.arrived.wait()
        reading.cancel()
        async with asyncio.timeout(AT_ONCE_S):
            await server.left.wait()
        await asyncio.wait({reading})
    assert reading.cancelled()


async def test_a_call_that_was_cancelled_after_its_finish_reason_is_not_called_finished() -> None:
    async with serving(holds(SSE, STOP)) as server:
        call = await opened(chat_call(server.url))
        reading = asyncio.create_task(anext(call))
        assert await asyncio.wait({reading}, timeout=0.05) == (set(), {reading})  # It waits behind the finish reason.
        reading.cancel()
        await asyncio.wait({reading})
        chunks, error = await run(call)
    assert (chunks, error and error.code) == ([], "call_closed")


async def test_fifty_calls_cancelled_twice_leave_nothing_behind() -> None:
    async with serving(holds(SSE, TEXT)) as server:
        for turn in range(50):
            await _cancel_twice(chat_call(server.url), spins=turn % 7)
        async with asyncio.timeout(5):
            while server.open:
                await server.left.wait()
        gc.collect()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert [task for task in others if "upstream call" in task.get_name()] == []


async def test_a_call_works_after_fifty_double_cancels() -> None:
    async with serving(holds(SSE, TEXT)) as silent, serving(sends(SSE, TEXT, STOP, DONE)) as server:
        for turn in range(50):
            await _cancel_twice(chat_call(silent.url), spins=turn % 7)
        assert (await run(chat_call(server.url)))[1] is None


async def test_closing_goes_on_when_the_one_who_waits_for_it_is_cancelled() -> None:
    async with serving(holds(SSE, TEXT)) as server:
        call = await opened(chat_call(server.url))
        waiting = asyncio.create_task(call.close())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        async with asyncio.timeout(AT_ONCE_S):
            await server.left.wait()
        assert await call.close()


def open_sockets() -> set[str]:
    """Give this process's sockets, by their numbers in the kernel."""
    return {link for one in Path("/proc/self/fd").iterdir() if (link := _target(one)).startswith("socket:")}


def _target(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except FileNotFoundError:
        return ""  # The one that lists them.


async def _cancel_twice(call: HttpCall, *, spins: int) -> None:
    reading = asyncio.create_task(run(call))
    for _ in range(spins * 3):
        await asyncio.sleep(0)
    reading.cancel()
    for _ in range(spins):
        await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait({reading})
    assert await call.close()
