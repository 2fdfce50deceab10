"""A relay between two parts of the site, with a fault switch: what `tc` and a firewall do, without root."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

from tests.torture.hurts import How, Hurt, Hurts, Place

# A Unix socket's path, or a port of 127.0.0.1.
Address: TypeAlias = Path | int

_READ_BYTES = 64 * 1024


class Wire:
    """
    Relays every connection to `target`, and notes in `hurts` what is done to it.

    Delayed, it holds each piece back, in both directions. Silenced, nothing passes and nobody is told.
    Refusing, it hangs up on whoever connects.
    """

    def __init__(self, target: Address, hurts: Hurts, place: Place, number: int = 0) -> None:
        self._target = target
        self._begin_hurt = partial(hurts.begin, place, number=number)
        self._lasting: list[Hurt] = []
        self._delay_s = 0.0
        self._is_refusing = False
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._open: dict[asyncio.Task[None], tuple[asyncio.StreamWriter, ...]] = {}
        self._server: asyncio.Server | None = None

    async def listen(self, at: Address) -> int:
        """Begin to relay; port 0 takes a free one. Gives the port, or 0 for a Unix socket."""
        if isinstance(at, Path):
            self._server = await asyncio.start_unix_server(self._serve, at, backlog=1024)
            return 0
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", at, backlog=1024)
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def connections(self) -> int:
        return len(self._open)

    def silence(self) -> None:
        self._lasting.append(self._begin_hurt(How.AWAY))
        self._flowing.clear()

    @contextlib.contextmanager
    def silenced(self) -> Iterator[None]:
        self.silence()
        try:
            yield
        finally:
            self.heal()

    @contextlib.contextmanager
    def delayed(self, by_s: float) -> Iterator[None]:
        self._lasting.append(self._begin_hurt(How.DISTURBED))
        self._delay_s = by_s
        try:
            yield
        finally:
            self.heal()

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        self._lasting.append(self._begin_hurt(How.DISTURBED))
        self._is_refusing = True
        try:
            yield
        finally:
            self.heal()

    def heal(self) -> None:
        """Take back whatever lasts. What was silenced flows on; what was cut stays cut."""
        self._delay_s, self._is_refusing = 0.0, False
        self._flowing.set()
        for hurt in self._lasting:
            hurt.heal()
        self._lasting.clear()

    def cut(self) -> None:
        """Reset every connection; what was on its way is lost."""
        self._begin_hurt(How.DISTURBED).heal()
        for ends in self._open.values():
            for end in ends:
                end.transport.abort()

    def close_cleanly(self) -> None:
        """End every connection as a proxy does that has had enough: in an orderly way."""
        self._begin_hurt(How.DISTURBED).heal()
        for ends in self._open.values():
            for end in ends:
                end.close()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self.heal()
        self.cut()
        tasks = list(self._open)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if self._is_refusing or task is None:
            writer.transport.abort()
            return
        self._open[task] = (writer,)
        try:
            await self._relay(task, reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # A broken end breaks the other one; `finally` does it.
        finally:
            for end in self._open.pop(task):
                end.close()

    async def _relay(
        self, task: asyncio.Task[None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await self._flowing.wait()
        there, back = await self._connect()
        self._open[task] = (writer, back)
        pumps = [asyncio.create_task(self._pump(reader, back)), asyncio.create_task(self._pump(there, writer))]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._target, Path):
            return await asyncio.open_unix_connection(self._target)
        return await asyncio.open_connection("127.0.0.1", self._target)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_READ_BYTES):
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
