"""Upstreams in the test's hands: one that drips until it is told to finish, and some that answer nonsense."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
_PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<!doctype html><h1>Log in</h1>"
_END = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
_RATE = 100.0


def words(name: str) -> Iterator[str]:
    """Give numbered words without end, so that a word that is lost, doubled or another's is seen."""
    for n in count(1):
        yield f"{name}{n}" + ("\n\n" if n % 40 == 0 else " 🌍 " if n % 9 == 0 else " żółć " if n % 7 == 0 else " ")


class Tap:
    """
    A model service whose answers go on until the test ends them.

    `said` maps a model's name to all that its newest answer has been given so far, `thought` to its reasoning.
    """

    def __init__(self) -> None:
        self.said: dict[str, str] = {}
        self.thought: dict[str, str] = {}
        self.address = ""
        self._finishing = asyncio.Event()
        self._calls: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Let the answers that are asked for from now on run."""
        self._finishing.clear()

    def finish(self) -> None:
        """Let all answers end, properly."""
        self._finishing.set()

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[Tap]:
        server = await asyncio.start_server(self._called, "127.0.0.1", 0)
        self.address = "http://{}:{}".format(*server.sockets[0].getsockname()[:2])
        try:
            yield self
        finally:
            server.close()
            for call in self._calls:
                call.cancel()
            await asyncio.gather(*self._calls, return_exceptions=True)

    def _called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        call = asyncio.ensure_future(self._answer(reader, writer))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
            model = json.loads(await reader.readexactly(int(fields["content-length"])))["model"]
            match model:
                case "html":
                    writer.write(_PAGE)
                case "half-json":
                    writer.write(_HEAD + _delta("Half of it ") + _delta("never seen")[:-20])
                case "tap-thinks":
                    await self._think(model, writer)
                case _:
                    await self._drip(model, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # The caller has left, as it may.
        finally:
            writer.close()

    async def _drip(self, model: str, writer: asyncio.StreamWriter) -> None:
        """Say words until told to finish."""
        writer.write(_HEAD)
        self.said[model] = ""
        async for word in self._words(model):
            writer.write(_delta(word))
            await writer.drain()
            self.said[model] += word
        writer.write(_END)

    async def _think(self, model: str, writer: asyncio.StreamWriter) -> None:
        """Think words until told to finish; then say a sentence."""
        writer.write(_HEAD)
        self.thought[model] = ""
        async for word in self._words(model):
            writer.write(_delta(word, "reasoning_content"))
            await writer.drain()
            self.thought[model] += word
        self.said[model] = "So it is."
        writer.write(_delta(self.said[model]) + _END)

    async def _words(self, model: str) -> AsyncIterator[str]:
        for word in words(model):
            yield word
            try:
                await asyncio.wait_for(self._finishing.wait(), 1 / _RATE)
            except TimeoutError:
                continue
            return


def _delta(text: str, field: str = "content") -> bytes:
    return _event({"choices": [{"index": 0, "delta": {field: text}, "finish_reason": None}]})


def _event(value: object) -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()
