"""Readers that stall, flood or come and go by the thousand cost the others nothing, and no memory stays behind."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

import pytest

from tests.bench.clients import read_ws_frame
from tests.torture.links import Lost, over_websocket, socket_of
from tests.torture.measured import resident_mb
from tests.torture.page import Habit
from tests.torture.person import Person
from tests.torture.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

_CLOSE = 8
# One masked text frame, made by hand: the mask is zero, so the text stands as it is.
_ACKNOWLEDGEMENT = b"\x81\x9d\0\0\0\0" + b'{"type":"ack","cursor":"1-0"}'


async def stalled(person: Person) -> socket.socket:
    """Open an event stream with the smallest window there is, and never read from it."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    reader.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(reader, ("127.0.0.1", person.site.port))
    head = (
        f"GET /api/conversations/{person.conversation}/events?cursor=0-0 HTTP/1.1",
        f"Host: 127.0.0.1:{person.site.port}", f"Cookie: {person.cookie}", "", "",
    )  # fmt: skip
    await loop.sock_sendall(reader, "\r\n".join(head).encode())
    return reader


async def test_awx_7720_fifty_stalled_readers_cost_no_memory(
    stage: Stage, figure: Callable[[str], None], at_length: bool
) -> None:
    talks = await stage.talks(3, "flood", [Habit("websocket")])
    before = resident_mb(stage.site.webs)
    readers = [await stalled(talks[n % 3].person) for n in range(50)]
    await asyncio.gather(*(talk.page.until(talk.gen, 300_000 if at_length else 60_000) for talk in talks))
    grown = resident_mb(stage.site.webs) - before
    written = sum(len(talk.text()) for talk in talks) / 1e6
    for reader in readers:
        reader.close()
    await asyncio.gather(*(talk.person.stop(talk.gen) for talk in talks))
    figure(f"the web servers grew by {grown:.0f} MB beside 50 stalled readers and {written:.1f} M characters")
    assert await stage.judge() == []
    assert grown < 120


async def test_daphne_a_flooding_websocket_is_closed_and_others_go_on(
    stage: Stage, figure: Callable[[str], None]
) -> None:
    talk, other = await stage.talks(2, "count-on")
    before = resident_mb(stage.site.webs)
    other.page.forget_pauses()
    reader, writer = await socket_of(talk.person, "0-0")
    flood = asyncio.create_task(_flood(writer))
    code = await asyncio.wait_for(_close_code(reader), 20)
    flood.cancel()
    await asyncio.gather(flood, return_exceptions=True)
    writer.transport.abort()
    pause_ms = other.page.longest_pause_s.get(other.gen, 0.0) * 1000
    grown = resident_mb(stage.site.webs) - before
    figure(f"closed with {code}; web grew by {grown:.0f} MB; another's answer paused at most {pause_ms:.0f} ms")
    await asyncio.gather(*(one.person.stop(one.gen) for one in (talk, other)))
    assert await stage.judge() == []
    assert code == 4429
    assert grown < 60


async def _flood(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(_ACKNOWLEDGEMENT * 500)
        await writer.drain()


async def _close_code(reader: asyncio.StreamReader) -> int:
    while True:
        opcode, payload = await read_ws_frame(reader)
        if opcode == _CLOSE:
            return int.from_bytes(payload[:2], "big")


async def test_uvicorn_2754_a_thousand_comings_and_goings_leave_nothing_behind(
    stage: Stage, figure: Callable[[str], None], at_length: bool
) -> None:
    (talk,) = await stage.talks(1, "count-on")
    rounds, at_once = (400 if at_length else 40), 25
    await _come_and_go(talk.person, at_once * 4)  # What is made once is made now.
    before = resident_mb(stage.site.webs)
    for _ in range(rounds):
        await _come_and_go(talk.person, at_once)
    grown = resident_mb(stage.site.webs) - before
    figure(f"the web servers grew by {grown:.1f} MB in {rounds * at_once} connections")
    await talk.person.stop(talk.gen)
    assert await stage.judge() == []
    assert grown < 30


async def _come_and_go(person: Person, count: int) -> None:
    await asyncio.gather(*(_visit(person) for _ in range(count)))


async def _visit(person: Person) -> None:
    """Connect, get one frame, and vanish without a word."""
    with contextlib.suppress(Lost):
        async with contextlib.aclosing(over_websocket(person, "0-0")) as frames:
            async for _ in frames:
                return
