"""A web process that is told to stop: its readers go elsewhere at once, and what is under way gets done."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from django.conf import settings as django_settings

from chatapp.consumers import RESTART
from chatapp.leaving import Leaving, Left
from chatapp.up.grounds import free_port
from tests.chatapp.conftest import MODELS
from tests.chatapp.people import Person
from tests.chatapp.test_worker import database_url

ROOT = Path(__file__).parents[2]
LOOK_AGAIN_S = 0.02


# Who is served


async def test_a_block_that_can_be_interrupted_ends_with_the_beginning_of_the_end() -> None:
    leaving, waiting = Leaving(), asyncio.Event()

    async def follow() -> str:
        try:
            with leaving.interruptible():
                waiting.set()
                await asyncio.Event().wait()
        except Left:
            await asyncio.sleep(0)  # Whoever left may still say goodbye.
            return "left"
        return "ended"

    following = asyncio.create_task(follow())
    await waiting.wait()
    leaving.begin()
    assert await following == "left"


async def test_who_comes_after_the_beginning_of_the_end_is_sent_away() -> None:
    leaving = Leaving()
    leaving.begin()
    with pytest.raises(Left), leaving.interruptible():
        raise AssertionError("the block must not run")


async def test_a_cancellation_by_another_is_not_taken_for_leaving() -> None:
    leaving, waiting = Leaving(), asyncio.Event()

    async def follow() -> None:
        with leaving.interruptible():
            waiting.set()
            await asyncio.Event().wait()

    following = asyncio.create_task(follow())
    await waiting.wait()
    leaving.begin()
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following


async def test_alone_waits_for_every_visit() -> None:
    leaving = Leaving()
    with leaving.visit():
        with leaving.visit():
            alone = asyncio.create_task(leaving.alone())
        await asyncio.sleep(0)
        assert not alone.done()
    await alone


# A real Daphne


@dataclass
class Served:
    """A Daphne process, and how to reach it."""

    process: subprocess.Popen[bytes]
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def until_it_answers(self) -> None:
        async with httpx.AsyncClient() as client:
            while True:
                assert self.process.poll() is None, "Daphne ended"
                try:
                    await client.get(f"{self.url}/healthz")
                except httpx.TransportError:
                    await asyncio.sleep(LOOK_AGAIN_S)
                else:
                    return

    def tell_to_stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    async def exit_code(self) -> int:
        return await asyncio.to_thread(self.process.wait, 20)


@pytest.fixture
def daphne(site: None, redis_url: str, tmp_path: Path) -> Iterator[Served]:
    """A web process as `manage.py up` starts it."""
    port = free_port()
    environ = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "REDIS_URL": redis_url,
        "MODELS_FILE": str(MODELS),
        "SIDESTREAM_VAR": str(tmp_path),
        "SIDESTREAM_SECRET_KEY": django_settings.SECRET_KEY,
    }
    command = [sys.executable, "-m", "daphne", "--bind", "127.0.0.1", "--port", str(port), "chatapp.asgi:application"]
    process = subprocess.Popen(command, env=environ, cwd=ROOT)
    yield Served(process, port)
    process.kill()
    process.wait()


@dataclass
class Socket:
    """A WebSocket, as little of it as it takes to read what a server sends."""

    reader: asyncio.StreamReader

    async def message(self) -> tuple[int, bytes]:
        """Read one frame: its opcode and its payload."""
        head, length = struct.unpack("!BB", await self.reader.readexactly(2))
        if length == 126:
            (length,) = struct.unpack("!H", await self.reader.readexactly(2))
        return head & 0x0F, await self.reader.readexactly(length)


@asynccontextmanager
async def following(served: Served, person: Person, path: str) -> AsyncIterator[Socket]:
    """Follow a conversation over a WebSocket, from its first frame on."""
    await served.until_it_answers()
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    key = base64.b64encode(os.urandom(16)).decode()
    lines = [
        f"GET {path.replace('/api/', '/ws/')}?cursor=0-0 HTTP/1.1", f"Host: 127.0.0.1:{served.port}",
        f"Origin: {served.url}", f"Cookie: {person.cookie}", "Upgrade: websocket", "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13",
    ]  # fmt: skip
    writer.write("\r\n".join([*lines, "", ""]).encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 101"), answer
    socket = Socket(reader)
    await socket.message()
    yield socket
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


CLOSE = 8

real = pytest.mark.django_db(transaction=True)


@real
async def test_sockets_are_told_that_the_server_restarts(guest: Person, daphne: Served) -> None:
    async with following(daphne, guest, await guest.begin()) as socket:
        daphne.tell_to_stop()
        opcode, payload = await socket.message()
    assert (opcode, struct.unpack("!H", payload[:2])[0]) == (CLOSE, RESTART)
    assert await daphne.exit_code() == 0


@real
async def test_event_streams_end_whole_and_ask_for_a_quick_return(guest: Person, daphne: Served) -> None:
    path = await guest.begin()
    await daphne.until_it_answers()
    async with (
        httpx.AsyncClient(headers={"cookie": guest.cookie}) as client,
        client.stream("GET", f"{daphne.url}{path}/events?cursor=0-0") as response,
    ):
        parts = response.aiter_text()
        await anext(parts)
        daphne.tell_to_stop()
        # A response that is cut raises; this one ends as chunked responses do.
        rest = "".join([part async for part in parts])
    retry = rest.split("retry: ")[-1].strip()
    assert 20 <= int(retry) < 200
    assert await daphne.exit_code() == 0


@real
async def test_new_connections_are_refused_at_once(guest: Person, daphne: Served) -> None:
    async with following(daphne, guest, await guest.begin()) as socket:
        daphne.tell_to_stop()
        await socket.message()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", daphne.port)


@real
async def test_a_process_that_serves_nobody_ends_at_once(daphne: Served) -> None:
    await daphne.until_it_answers()
    daphne.tell_to_stop()
    assert await daphne.exit_code() == 0
