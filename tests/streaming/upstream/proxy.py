"""A small HTTP proxy that leads every host to one port of this machine."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.streaming.upstream.server import Connection, Server, serving


@asynccontextmanager
async def proxying(port: int, *, refuses: bool = False, tunnels: bool = True) -> AsyncIterator[Server]:
    """
    Lead tunnels and plain requests to the port.

    It answers 407 if it `refuses`, and without `tunnels` it says nothing to CONNECT, as one that hangs.
    """

    async def behave(client: Connection) -> None:
        if refuses:
            await client.send(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        is_tunnel = client.request.startswith(b"CONNECT ")
        if is_tunnel and not tunnels:
            await client.gone()
            return
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if is_tunnel:
            await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            writer.write(client.request)
        there = asyncio.create_task(_pass(client.reader, writer))
        await _pass(reader, client.writer)
        await there

    async with serving(behave) as server:
        yield server


async def _pass(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while piece := await source.read(65536):
            target.write(piece)
            await target.drain()
    target.close()
