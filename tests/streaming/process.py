"""A worker process under test, and the world around it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from typing import Any

from streaming.events import Event
from streaming.log.codec import event_of
from streaming.log.ports import Kind, Log, Ref
from streaming.runtime import Runtime
from streaming.snapshot import Snapshot, fold
from streaming.store import Job
from tests.streaming.fakes import LedUpstream, MemoryStore, job

VIEWS = (Kind.BLOCK, Kind.NOTICE)


class Clock:
    def __init__(self) -> None:
        self.offset = 0
        self._ticks = itertools.count(2_000_000)

    def __call__(self) -> int:
        return next(self._ticks) + self.offset


class Process:
    """A worker process under test: its runtime, and the world around it."""

    def __init__(self, log: Log, clock: Clock) -> None:
        self.log, self.clock = log, clock
        self.store = MemoryStore(clock=clock)
        self.upstream = LedUpstream()
        self.dispatched: list[str] = []
        self.runtime = Runtime(log, self.store, self.upstream.prepare, self.dispatched.append, clock)

    def start(self, one: Job | None = None, **changes: Any) -> tuple[Job, asyncio.Task[bool]]:
        added = self.store.add(one or job(**changes))
        return added, asyncio.create_task(self.runtime.drive(added.ref.gen))

    async def events(self, ref: Ref) -> list[Event]:
        logged = await self.log.range(ref.conversation, "0-0", f"{10**14}-0", 10_000)
        return [event_of(ref.gen, one) for one in logged if one.entry.kind not in VIEWS]

    async def snapshot(self, ref: Ref) -> Snapshot:
        snapshot = Snapshot(ref.gen)
        for event in await self.events(ref):
            snapshot = fold(snapshot, event)
        return snapshot


@contextlib.asynccontextmanager
async def serving(process: Process) -> AsyncIterator[None]:
    running = asyncio.create_task(process.runtime.run())
    yield
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
