"""A wire between browser and product that can be cut: a TCP relay with a port of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

_READ_BYTES = 64 * 1024


class Wire:
    """Relays connections to one address. Cookies and origin checks go by host, so a page works through it as well."""

    def __init__(self, to: str) -> None:
        self._to = urlsplit(to)
        self._writers: set[asyncio.StreamWriter] = set()
        self._relays: set[asyncio.Task[None]] = set()
        self.address = ""
        self.connections = 0  # That were ever made.

    @asynccontextmanager
    async def laid(self) -> AsyncIterator[Wire]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.address = "http://{}:{}".format(*server.sockets[0].getsockname()[:2])
        try:
            yield self
        finally:
            server.close()
            self.cut()
            await asyncio.gather(*self._relays, return_exceptions=True)

    def cut(self) -> None:
        """Break every connection at once, with no good-bye to either side."""
        for writer in self._writers:
            writer.transport.abort()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        relay = asyncio.ensure_future(self._relay(reader, writer))
        self._relays.add(relay)
        relay.add_done_callback(self._relays.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection(self._to.hostname, self._to.port)
        ends = {writer, forth}
        self._writers |= ends
        try:
            await asyncio.gather(_pump(reader, forth), _pump(back, writer))
        finally:
            self._writers -= ends
            for end in ends:
                end.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_READ_BYTES):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.transport.abort()
