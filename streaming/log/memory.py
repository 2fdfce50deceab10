"""The log as one would explain it: the specification that the scripts are tested against."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from streaming.errors import Fenced, LogError, LogLost
from streaming.frames import cursor_key
from streaming.lifecycle import TERMINAL, State
from streaming.log.codec import Stored, cancel_notice, position_of, snapshot_of
from streaming.log.ports import (
    BEYOND,
    LEASE_MS,
    Appended,
    Batch,
    CancelRequest,
    Claim,
    Entry,
    Kind,
    Lease,
    Logged,
    LogSnapshot,
    Ref,
)


@dataclass(slots=True)
class _Meta:
    attempt: int = 0
    seq: int = 0
    state: State = State.QUEUED
    lease: int = 0
    cursor: str = ""
    cancel: CancelRequest | None = None
    text: str = ""
    reasoning: str = ""
    facts: list[str] = field(default_factory=list)
    blocks: dict[int, str] = field(default_factory=dict)
    newest_block: int | None = None

    @property
    def ended(self) -> bool:
        return self.state in TERMINAL

    def forget(self) -> None:
        self.seq, self.text, self.reasoning, self.state = 0, "", "", State.QUEUED
        self.facts, self.blocks, self.newest_block = [], {}, None

    def keep(self, entry: Entry) -> None:
        match entry.kind:
            case Kind.TEXT:
                self.text += entry.payload
            case Kind.REASONING:
                self.reasoning += entry.payload
            case Kind.BLOCK:
                self.blocks[entry.index] = entry.payload
                self.newest_block = entry.index
                return
            case _:
                self.facts.append(entry.payload)
        self.seq = entry.seq


class MemoryLog:
    """Log port within one process. `clock` gives epoch milliseconds."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._logs: dict[str, list[Logged]] = defaultdict(list)
        self._metas: dict[Ref, _Meta] = {}
        self._gone: set[str] = set()
        self._grown = asyncio.Condition()
        self._wakings = 0
        self._cancelled: set[asyncio.Queue[str]] = set()

    async def claim(self, ref: Ref, known_attempt: int) -> Claim:
        meta = self._metas.setdefault(ref, _Meta())
        was_known = meta.attempt > 0
        granted = not meta.ended and not Lease(meta.state, meta.attempt, meta.lease, self._clock()).runs
        if granted:
            meta.attempt = max(meta.attempt, known_attempt) + 1
            meta.lease = self._clock() + LEASE_MS
        return Claim(granted, meta.attempt, meta.seq, meta.state, meta.cancel, was_known)

    async def append(self, batches: Sequence[Batch]) -> list[Appended | LogError]:
        answers = [self._append(batch) for batch in batches]
        await self._wake()
        return answers

    async def cancel(self, ref: Ref, by: str) -> Claim:
        meta = self._metas.setdefault(ref, _Meta())
        if not meta.ended:
            if meta.cancel is None:
                meta.cancel = CancelRequest(self._clock(), by)
                await self.announce(ref.conversation, cancel_notice(ref.gen, meta.cancel))
            self._publish(ref)
        return Claim(not meta.ended, meta.attempt, meta.seq, meta.state, meta.cancel, meta.attempt > 0)

    async def remove(self, conversation: str, refs: Sequence[Ref]) -> None:
        self._logs.pop(conversation, None)
        self._gone.add(conversation)
        for ref in refs:
            self._metas[ref] = _Meta(attempt=BEYOND, state=State.CANCELLED)
            self._publish(ref)

    async def announce(self, conversation: str, view_json: str) -> str:
        if conversation in self._gone:
            return ""
        cursor = self._add(conversation, Entry(0, 0, 0, Kind.NOTICE, view_json))
        await self._wake()
        return cursor

    async def snapshot(self, conversation: str, refs: Sequence[Ref]) -> LogSnapshot:
        cursor, _ = await self.position(conversation)
        metas = {ref: meta for ref in refs if (meta := self._metas.get(ref)) and not meta.ended}
        return LogSnapshot(cursor, {ref.number: snapshot_of(ref, _stored(meta)) for ref, meta in metas.items()})

    async def leases(self, refs: Sequence[Ref]) -> list[Lease | None]:
        metas = [self._metas.get(ref) for ref in refs]
        return [Lease(meta.state, meta.attempt, meta.lease, self._clock()) if meta else None for meta in metas]

    async def range(self, conversation: str, after: str, until: str, limit: int) -> list[Logged]:
        low, high = cursor_key(after), cursor_key(until)
        found = [logged for logged in self._logs[conversation] if low < cursor_key(logged.cursor) <= high]
        return found[:limit]

    async def position(self, conversation: str) -> tuple[str, int]:
        log = self._logs[conversation]
        now = self._clock()
        return position_of(log[-1].cursor if log else None, now), now

    def tail(self) -> MemoryTail:
        return MemoryTail(self)

    async def cancellations(self) -> AsyncIterator[str]:
        queue: asyncio.Queue[str] = asyncio.Queue()
        self._cancelled.add(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._cancelled.discard(queue)

    async def close(self) -> None:
        """Nothing is held open."""

    def _append(self, batch: Batch) -> Appended | LogError:
        meta = self._metas.get(batch.ref) or _Meta()
        if meta.attempt > batch.attempt:
            return Fenced("a newer driver holds the generation")
        if meta.attempt < batch.attempt:
            if not batch.restore:
                return LogLost(-1)
            meta.attempt = batch.attempt
            meta.forget()
        if batch.last_seq > meta.seq:
            return LogLost(meta.seq)
        if meta.ended:
            if not batch.entries or batch.entries[-1].seq > meta.seq:
                return Fenced("the generation has ended")
            return Appended(meta.cursor, None)
        self._metas[batch.ref] = meta
        meta.cursor = ""
        for entry in batch.entries:
            if entry.seq > meta.seq or (entry.kind is Kind.BLOCK and entry.seq == meta.seq):
                meta.cursor = self._add(batch.ref.conversation, entry)
                meta.keep(entry)
        meta.state, meta.lease = batch.state, self._clock() + LEASE_MS
        return Appended(meta.cursor, meta.cancel)

    def _add(self, conversation: str, entry: Entry) -> str:
        log = self._logs[conversation]
        ms, n = cursor_key(log[-1].cursor) if log else (0, -1)
        now = self._clock()
        cursor = f"{now}-0" if now > ms else f"{ms}-{n + 1}"
        log.append(Logged(cursor, entry))
        return cursor

    def _publish(self, ref: Ref) -> None:
        for queue in self._cancelled:
            queue.put_nowait(ref.gen)

    async def _wake(self) -> None:
        async with self._grown:
            self._wakings += 1
            self._grown.notify_all()


class MemoryTail:
    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._woken = 0

    async def wait(self, at_most_ms: int) -> None:
        grown = self._log._grown  # noqa: SLF001 - log and tail are one module's two halves.
        with contextlib.suppress(TimeoutError):
            async with grown, asyncio.timeout(at_most_ms / 1000):
                await grown.wait_for(lambda: self._log._wakings != self._woken)  # noqa: SLF001
        self._woken = self._log._wakings  # noqa: SLF001

    async def read(self, cursors: Mapping[str, str]) -> dict[str, list[Logged]]:
        found = {
            conversation: [x for x in self._log._logs[conversation] if cursor_key(x.cursor) > cursor_key(cursor)]  # noqa: SLF001
            for conversation, cursor in cursors.items()
        }
        return {conversation: entries for conversation, entries in found.items() if entries}

    async def interrupt(self) -> None:
        await self._log._wake()  # noqa: SLF001

    async def close(self) -> None:
        """Nothing is held open."""


def _stored(meta: _Meta) -> Stored:
    return Stored(
        meta.attempt,
        meta.seq,
        meta.text,
        meta.reasoning,
        tuple(meta.facts),
        dict(meta.blocks),
        meta.newest_block,
        meta.cancel,
    )
