from __future__ import annotations

import asyncio
import time

from streaming.upstream.deadlines import LATE_S
from streaming.upstream.http import Deadlines
from tests.streaming.upstream.calls import chat_call, failure, run, text_of
from tests.streaming.upstream.server import DONE, SSE, STOP, TEXT, Connection, holds, repeats, serving

TICK = 0.05


async def test_a_connection_that_is_never_ready_is_a_connect_timeout() -> None:
    # TLS to a port that stays silent: the handshake belongs to the connection.
    async with serving(holds(), reads_request=False) as server:
        call = chat_call(server.url.replace("http:", "https:"), deadlines=Deadlines(connect_s=TICK))
        assert (await failure(call)).code == "connect_timeout"


async def test_silence_before_the_head_is_a_first_byte_timeout() -> None:
    async with serving(holds()) as server:
        assert (
            await failure(chat_call(server.url, deadlines=Deadlines(first_byte_s=TICK)))
        ).code == "first_byte_timeout"


async def test_silence_after_the_head_is_a_first_byte_timeout() -> None:
    async with serving(holds(SSE)) as server:
        assert (
            await failure(chat_call(server.url, deadlines=Deadlines(first_byte_s=TICK)))
        ).code == "first_byte_timeout"


async def test_silence_after_text_is_an_idle_timeout_and_keeps_the_text() -> None:
    async with serving(holds(SSE, TEXT)) as server:
        chunks, error = await run(chat_call(server.url, deadlines=Deadlines(idle_s=TICK)))
        await server.left.wait()
    assert (text_of(chunks), error and error.code) == ("A", "idle_timeout")


async def test_the_idle_deadline_does_not_wait_for_the_longer_one_before_it() -> None:
    async with serving(holds(SSE, TEXT)) as server:
        begun = time.monotonic()
        await failure(chat_call(server.url, deadlines=Deadlines(first_byte_s=60, idle_s=TICK)))
    assert time.monotonic() - begun < 1


async def test_comments_hold_off_the_idle_deadline_but_not_the_one_for_payload() -> None:
    async with serving(repeats(SSE + TEXT, b": keep-alive\n\n", TICK / 5)) as server:
        call = chat_call(server.url, deadlines=Deadlines(idle_s=TICK, payload_idle_s=4 * TICK))
        assert (await failure(call)).code == "no_payload_timeout"


async def test_comments_before_the_first_payload_count_as_its_absence() -> None:
    async with serving(repeats(SSE, b": OPENROUTER PROCESSING\n\n", TICK / 5)) as server:
        call = chat_call(server.url, deadlines=Deadlines(payload_idle_s=2 * TICK))
        assert (await failure(call)).code == "no_payload_timeout"


async def test_a_slow_drip_meets_the_total_deadline() -> None:
    async with serving(repeats(SSE, TEXT, TICK / 5)) as server:
        call = chat_call(server.url, deadlines=Deadlines(idle_s=TICK, total_s=4 * TICK))
        assert (await failure(call)).code == "total_timeout"


async def test_a_slow_reader_is_not_taken_for_a_silent_service() -> None:
    async def behave(connection: Connection) -> None:
        await connection.send(SSE, TEXT)
        await read_on.wait()
        await connection.send(TEXT, STOP, DONE)

    read_on = asyncio.Event()
    async with serving(behave) as server:
        call = chat_call(server.url, deadlines=Deadlines(idle_s=TICK, payload_idle_s=TICK))
        await anext(call)
        await anext(call)
        # The driver is busy elsewhere for longer than the service may be silent.
        await asyncio.wait({busy := asyncio.create_task(read_on.wait())}, timeout=4 * TICK)
        read_on.set()
        await busy
        chunks, error = await run(call)
    assert (text_of(chunks), error) == ("A", None)


async def test_what_arrived_while_this_process_slept_is_read_before_any_deadline_counts() -> None:
    async def behave(connection: Connection) -> None:
        await connection.send(SSE, TEXT, STOP, DONE)
        time.sleep(TICK + 3 * LATE_S)  # noqa: ASYNC251 - the whole process is stopped, as by SIGSTOP.

    async with serving(behave) as server:
        chunks, error = await run(chat_call(server.url, deadlines=Deadlines(first_byte_s=TICK)))
    assert (text_of(chunks), error) == ("A", None)


async def test_a_service_that_was_silent_while_this_process_slept_is_late_all_the_same() -> None:
    async def behave(connection: Connection) -> None:
        time.sleep(TICK + 3 * LATE_S)  # noqa: ASYNC251
        await connection.gone()

    async with serving(behave) as server:
        assert (
            await failure(chat_call(server.url, deadlines=Deadlines(first_byte_s=TICK)))
        ).code == "first_byte_timeout"
