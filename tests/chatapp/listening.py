"""Readers of a conversation's live frames, one for each transport, made alike."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any, TypeAlias

from channels.testing import WebsocketCommunicator

from chatapp.consumers import application
from streaming.events import BlockView, event_from_dict, view_from_dict
from streaming.snapshot import Snapshot, fold, fold_view
from tests.chatapp.people import HOST, Person

Frames: TypeAlias = AsyncIterator[dict[str, Any]]
Listen: TypeAlias = Callable[[Person, str, str], AbstractAsyncContextManager[Frames]]


@asynccontextmanager
async def over_sse(person: Person, path: str, cursor: str) -> AsyncIterator[Frames]:
    response = await person.get(f"{path}/events?cursor={cursor}")
    assert response.status_code == 200, response.content
    async with aclosing(aiter(response)) as parts:
        yield _sse_frames(parts)
    response.close()


@asynccontextmanager
async def over_ndjson(person: Person, path: str, cursor: str) -> AsyncIterator[Frames]:
    response = await person.get(f"{path}/events?cursor={cursor}", accept="application/x-ndjson")
    assert response.status_code == 200, response.content
    async with aclosing(aiter(response)) as parts:
        yield _ndjson_frames(parts)
    response.close()


@asynccontextmanager
async def over_websocket(person: Person, path: str, cursor: str) -> AsyncIterator[Frames]:
    socket = socket_of(person, path, cursor)
    connected, _ = await socket.connect()
    assert connected
    yield _socket_frames(socket)
    await socket.disconnect()


TRANSPORTS: dict[str, Listen] = {"sse": over_sse, "ndjson": over_ndjson, "websocket": over_websocket}


def socket_of(
    person: Person, path: str, cursor: str = "0-0", *, origin: str | None = f"http://{HOST}"
) -> WebsocketCommunicator:
    headers = [(b"host", HOST.encode())]
    if person.client.cookies:
        headers.append((b"cookie", person.cookie.encode()))
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    address = f"{path.replace('/api/', '/ws/')}?cursor={cursor}"
    return WebsocketCommunicator(application, address, headers)


async def close_code(socket: WebsocketCommunicator) -> int:
    """Read on until the server closes; give its code."""
    while True:
        message = await socket.receive_output()
        if message["type"] == "websocket.close":
            return int(message["code"])


async def events_until_the_end(frames: Frames) -> list[dict[str, Any]]:
    """Read events up to the first terminal one."""
    events: list[dict[str, Any]] = []
    async for frame in frames:
        events += frame.get("events", ())
        if any(event["type"] in ("done", "cancelled", "error") for event in events):
            return events
    raise AssertionError("the stream ended before the generation did")


def folded(gen: str, events: list[dict[str, Any]], onto: Snapshot | None = None) -> Snapshot:
    """Fold what a reader was sent of a generation."""
    snapshot = onto or Snapshot(gen)
    for event in events:
        if event["type"] == "block":
            view = view_from_dict(event)
            assert isinstance(view, BlockView)
            snapshot = fold_view(snapshot, view)
        elif event.get("gen") == gen:
            snapshot = fold(snapshot, event_from_dict(event))
    return snapshot


async def _sse_frames(parts: AsyncIterator[bytes]) -> Frames:
    async for part in parts:
        for line in part.decode().split("\n"):
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))


async def _ndjson_frames(parts: AsyncIterator[bytes]) -> Frames:
    async for part in parts:
        for line in part.decode().split("\n"):
            if line:
                yield json.loads(line)


async def _socket_frames(socket: WebsocketCommunicator) -> Frames:
    while True:
        frame = json.loads(await socket.receive_from())
        yield frame
        if "cursor" in frame:
            await socket.send_to(json.dumps({"type": "ack", "cursor": frame["cursor"]}))


async def until_all_ended(frames: AsyncIterator[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Give the events of a reader's frames up to the end of as many answers."""
    events: list[dict[str, Any]] = []
    ended = 0
    async for frame in frames:
        new = frame.get("events", ())
        events += new
        ended += sum(event["type"] in ("done", "cancelled", "error") for event in new)
        if ended == count:
            return events
    raise AssertionError(f"the stream ended when {ended} of {count} answers had")
