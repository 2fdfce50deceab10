"""The three transports of a live connection, made alike: each yields frames until its connection ends."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, TypeAlias

import httpx

from tests.bench.clients import read_ws_frame, write_ws_frame
from tests.torture.hurts import now_ms
from tests.torture.person import Person

Frames: TypeAlias = AsyncGenerator[dict[str, Any], None]
Open: TypeAlias = Callable[[Person, str], Frames]

CONNECT_S = 8.0
# The server says something at least every 15 s.
SILENCE_S = 20.0
_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10
_LONGEST_FRAME = 64 * 1024 * 1024


# What a page that keeps to the rules must never be told, whatever is done to the site.
_UNFAIR = {4400, 4404, 4429, 4500, 1011}
_NOTHING_HERE = {404, 4404}
# What has to be explained: the server has a fault, leaves, or cannot reach its log.
_EXCUSES = {502, 503, 504, 4502, 4503}


class Lost(Exception):
    """The connection ended, or could not be had. It says nothing about any generation."""


class Gone(Exception):
    """The conversation was deleted, and the page was told so."""


class Unfair(Exception):
    """A page that keeps to the rules was told that it does not, or that the server has a fault."""


async def over_sse(person: Person, cursor: str) -> Frames:
    async with aclosing(_lines(person, cursor, "text/event-stream")) as lines:
        async for line in lines:
            if line.startswith(b"data: "):
                yield _decoded(line[6:])


async def over_ndjson(person: Person, cursor: str) -> Frames:
    async with aclosing(_lines(person, cursor, "application/x-ndjson")) as lines:
        async for line in lines:
            if line:
                yield _decoded(line)


async def over_websocket(person: Person, cursor: str) -> Frames:
    """Acknowledges each frame when the next one is asked for: then it has been applied."""
    opened = now_ms()
    async with asyncio.timeout(CONNECT_S):
        reader, writer = await socket_of(person, cursor)
    try:
        while True:
            async with asyncio.timeout(SILENCE_S):
                opcode, payload = await read_ws_frame(reader)
            if opcode == _PING:
                write_ws_frame(writer, _PONG, payload)
            elif opcode == _CLOSE:
                raise _ended(person, int.from_bytes(payload[:2], "big"), opened)
            elif opcode == _TEXT:
                frame = _decoded(payload)
                yield frame
                if "cursor" in frame:
                    write_ws_frame(writer, _TEXT, json.dumps({"type": "ack", "cursor": frame["cursor"]}).encode())
    except (OSError, EOFError) as exc:  # TimeoutError is an OSError, IncompleteReadError an EOFError.
        raise Lost(repr(exc)) from exc
    finally:
        writer.transport.abort()


TRANSPORTS: dict[str, Open] = {"sse": over_sse, "ndjson": over_ndjson, "websocket": over_websocket}


async def _lines(person: Person, cursor: str, accept: str) -> AsyncGenerator[bytes, None]:
    """Split at line feeds only: JSON may hold every other line end that Unicode knows."""
    url = f"/api/conversations/{person.conversation}/events?cursor={cursor}"
    timeout = httpx.Timeout(CONNECT_S, read=SILENCE_S)
    began = now_ms()
    rest = b""
    try:
        async with person.http.stream("GET", url, headers={"Accept": accept}, timeout=timeout) as response:
            if response.status_code != httpx.codes.OK:
                raise _refused(person, response.status_code, began)
            async for data in response.aiter_bytes():
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    yield line
    except httpx.HTTPError as exc:
        raise Lost(repr(exc)) from exc
    # The response ended in an orderly way. Only the log says what that means for an answer: nothing.
    raise Lost("ended cleanly")


async def socket_of(person: Person, cursor: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """
    Open a WebSocket.

    Raises:
        Lost: it was refused.
    """
    began = now_ms()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", person.site.port, limit=_LONGEST_FRAME)
    except OSError as exc:
        raise Lost(repr(exc)) from exc
    key = base64.b64encode(os.urandom(16)).decode()
    head = (
        f"GET /ws/conversations/{person.conversation}?cursor={cursor} HTTP/1.1", f"Host: 127.0.0.1:{person.site.port}",
        f"Origin: {person.origin}", "Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {key}",
        "Sec-WebSocket-Version: 13", f"Cookie: {person.cookie}", "", "",
    )  # fmt: skip
    writer.write("\r\n".join(head).encode())
    try:
        answer = await reader.readuntil(b"\r\n\r\n")
    except (OSError, EOFError) as exc:
        writer.transport.abort()
        raise Lost(repr(exc)) from exc
    except asyncio.CancelledError:
        writer.transport.abort()
        raise
    if not answer.startswith(b"HTTP/1.1 101 "):
        writer.transport.abort()
        raise _refused(person, int(answer.split(b" ", 2)[1]), began)
    return reader, writer


def _refused(person: Person, status: int, began: float) -> Exception:
    """A server that is away makes nginx answer with 502 or 504, and one without Redis answers 503 itself."""
    if status not in _EXCUSES:
        return _unfair(person, status)
    person.refused("a live connection", began, status, "refused")
    return Lost(f"refused with {status}")


def _ended(person: Person, code: int, began: float) -> Exception:
    if code in _UNFAIR:
        return _unfair(person, code)
    if code in _EXCUSES:
        person.refused("a WebSocket", began, code, "closed")
    return Lost(f"closed with {code}")


def _unfair(person: Person, status: int) -> Exception:
    if person.deleting and status in _NOTHING_HERE:
        return Gone()
    return Unfair(f"told {status}")


def _decoded(text: bytes) -> dict[str, Any]:
    try:
        frame: dict[str, Any] = json.loads(text)
    except ValueError as exc:
        # The page treats this as a gap. Here it is one that must not happen.
        raise AssertionError(f"a frame is no JSON: {text[:200]!r}") from exc
    return frame
