"""Fakes at the ports: a store in a dictionary, and an upstream that a test leads by the hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from streaming.errors import UpstreamError
from streaming.lifecycle import TERMINAL, State
from streaming.log.ports import Ref
from streaming.store import Job, Live, Outcome
from streaming.upstream.ports import ChatRequest, Chunk, FinishChunk, Message, Opened, TextChunk


def job(ref: Ref | None = None, **changes: Any) -> Job:
    ref = ref or Ref(str(uuid4()), 1, str(uuid4()))
    made = Job(ref, State.QUEUED, 0, "pane-1", "smol", {"temperature": 0}, (Message("user", "Hi"),), 1_000)
    return replace(made, **changes)


@dataclass
class MemoryStore:
    """The Store port in memory, with the same fences as the database's."""

    jobs: dict[str, Job] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    ended_at: dict[str, int] = field(default_factory=dict)  # epoch ms; just now, where a test says nothing
    before_finish: Callable[[], Any] | None = None
    clock: Callable[[], int] = lambda: 0

    def add(self, job: Job) -> Job:
        self.jobs[job.ref.gen] = job
        return job

    async def job(self, gen: str) -> Job | None:
        return self.jobs.get(gen)

    async def begin(self, gen: str, attempt: int) -> bool:
        known = self.jobs[gen]
        if known.state in TERMINAL or known.attempt >= attempt:
            return False
        self.jobs[gen] = replace(known, state=State.RUNNING, attempt=attempt)
        return True

    async def finish(self, gen: str, attempt: int, outcome: Outcome) -> bool:
        if self.before_finish is not None:
            self.before_finish()
        known = self.jobs[gen]
        if known.attempt != attempt:
            return False
        if known.state in TERMINAL:
            return known.state is outcome.snapshot.state
        self.jobs[gen] = replace(known, state=outcome.snapshot.state)
        self.outcomes[gen] = outcome
        return True

    async def ended(self, gen: str) -> Outcome | None:
        return self.outcomes.get(gen)

    async def live(self, ended_within_ms: int) -> list[Live]:
        since = self.clock() - ended_within_ms
        listed = (one for one in self.jobs.values() if self.ended_at.get(one.ref.gen, since) >= since)
        return [Live(one.ref, one.state, one.queued_at) for one in listed]


class LedCall:
    """One call: yields what the test says, when it says so."""

    def __init__(self, request: ChatRequest, upstream: LedUpstream) -> None:
        self.request = request
        self.closed = False
        self._upstream = upstream
        self._chunks: asyncio.Queue[Chunk | Exception | None] = asyncio.Queue()

    def say(self, *chunks: Chunk | Exception) -> None:
        for chunk in chunks:
            self._chunks.put_nowait(chunk)

    def text(self, *texts: str) -> None:
        self.say(*map(TextChunk, texts))

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        self._upstream.calls.append(self)
        self._upstream.called.set()
        while not self.closed:
            chunk = await self._chunks.get()
            if chunk is None:
                break
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk
            if isinstance(chunk, FinishChunk):
                return
        raise UpstreamError("connection_lost", "closed")

    async def close(self) -> bool:
        if self._upstream.never_closes:
            await asyncio.Event().wait()
        self.closed = True
        self._chunks.put_nowait(None)
        return True


@dataclass
class LedUpstream:
    """Upstream port. `script` is said by every call at once; a test says more through `calls`."""

    script: Iterable[Chunk | Exception] = ()
    scripts: list[list[Chunk | Exception]] = field(default_factory=list)
    never_closes: bool = False
    calls: list[LedCall] = field(default_factory=list)
    called: asyncio.Event = field(default_factory=asyncio.Event)

    def call(self, request: ChatRequest) -> LedCall:
        made = LedCall(request, self)
        made.say(*(self.scripts.pop(0) if self.scripts else self.script))
        return made

    def prepare(self, job: Job) -> tuple[LedUpstream, ChatRequest]:
        return self, ChatRequest("m", job.messages, job.params)


HELLO = (Opened(), TextChunk("Hello"), TextChunk(" world"), FinishChunk("stop", "stop"))


async def until(condition: Callable[[], Any]) -> None:
    """Wait for a state, giving other tasks the loop. The test's own timeout is the bound."""
    while not condition():
        await asyncio.sleep(0.002)


def error(code: str, **options: Any) -> UpstreamError:
    return UpstreamError(code, "What happened, and what to do.", **options)
