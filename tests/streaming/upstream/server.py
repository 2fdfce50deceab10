"""A real HTTP server in the test's own loop, that does exactly what a test says with its connection."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
GZIP = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n"
TEXT = b'data: {"choices":[{"delta":{"content":"A"},"finish_reason":null}]}\n\n'
STOP = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"


@dataclass(slots=True)
class Connection:
    """One connection, after its request was read."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    request: bytes

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def gone(self) -> None:
        """Wait until the client has closed its side."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass


Behaviour = Callable[[Connection], Awaitable[None]]


@dataclass(slots=True)
class Server:
    url: str
    port: int = 0
    requests: list[bytes] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    open: int = 0


@asynccontextmanager
async def serving(
    behave: Behaviour, *, reads_request: bool = True, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    server = Server("")
    connections: list[Any] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(asyncio.current_task())
        server.open += 1
        server.left.clear()
        try:
            request = await read_request(reader) if reads_request else b""
            server.requests.append(request)
            server.arrived.set()
            await behave(Connection(reader, writer, request))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            server.open -= 1
            server.left.set()
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    listener = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    server.url = f"https://localhost:{server.port}/v1" if tls else f"http://127.0.0.1:{server.port}/v1"
    try:
        yield server
    finally:
        listener.close()
        await listener.wait_closed()
        # Whoever closes a call is gone before the server knows of it.
        await asyncio.gather(*connections)


def sends(*pieces: bytes) -> Behaviour:
    """Send this and close."""

    async def behave(connection: Connection) -> None:
        await connection.send(*pieces)

    return behave


def holds(*pieces: bytes) -> Behaviour:
    """Send this and keep the connection open until the client leaves."""

    async def behave(connection: Connection) -> None:
        await connection.send(*pieces)
        await connection.gone()

    return behave


def repeats(first: bytes, piece: bytes, every_s: float) -> Behaviour:
    """Send `first`, then `piece` again and again until the client leaves."""

    async def behave(connection: Connection) -> None:
        await connection.send(first)
        gone = asyncio.create_task(connection.gone())
        while not gone.done():
            await connection.send(piece)
            await asyncio.wait({gone}, timeout=every_s)

    return behave


def answers(status: str, body: bytes = b"", **headers: str) -> Behaviour:
    """Send a whole response with this status line."""
    named = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{named}\r\n"
    return sends(head.encode() + body)


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Read all of it: closing over unread bytes would reset the connection, and take the answer along."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
    )
    return head + await reader.readexactly(length)
