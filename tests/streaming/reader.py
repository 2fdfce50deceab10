"""A page as far as a follower can tell, and the tailer that it reads from."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from streaming.events import event_from_dict
from streaming.follower import Follower, Frame
from streaming.log.ports import Log, Ref
from streaming.snapshot import Snapshot, fold
from streaming.tailer import Tailer


@contextlib.asynccontextmanager
async def tailing(log: Log) -> AsyncIterator[Tailer]:
    tailer = Tailer(log)
    running = asyncio.create_task(tailer.run())
    yield tailer
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


class Reader:
    """A page as far as a follower can tell: folds what it is sent."""

    def __init__(self, ref: Ref) -> None:
        self.snapshot = Snapshot(ref.gen)
        self.frames: list[dict[str, Any]] = []
        self.cursor = ""

    def apply(self, frame: Frame) -> None:
        data = json.loads(frame.text)
        self.frames.append(data)
        self.cursor = data.get("cursor", self.cursor)
        for event in data.get("events", ()):
            if event["type"] not in ("block", "turn") and event["gen"] == self.snapshot.gen:
                self.snapshot = fold(self.snapshot, event_from_dict(event))
        for known in data.get("generations", ()):
            if known["gen"] == self.snapshot.gen:
                self.snapshot = replace(self.snapshot, text=known["text"], seq=known["seq"], state=known["state"])

    @property
    def types(self) -> list[str]:
        return [frame["type"] for frame in self.frames]


@contextlib.asynccontextmanager
async def reading(tailer: Tailer, log: Log, ref: Ref, cursor: str = "", **options: Any) -> AsyncIterator[Reader]:
    reader = Reader(ref)
    cursor = cursor or (await log.position(ref.conversation))[0]

    async def read() -> None:
        async with Follower(tailer, log, ref.conversation, cursor, {ref.number: ref.gen}, **options) as follower:
            async for frame in follower.frames():
                reader.apply(frame)

    task = asyncio.create_task(read())
    try:
        yield reader
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
