"""Drives one generation: upstream → journal → log, one terminal event, and the database before it.

Who may stop a driver, and what it leaves behind:
- a cancel request (flag in the log): closes the upstream, ends as cancelled;
- a newer driver, a committed end or a deletion (fence): closes the upstream, writes nothing more;
- `interrupt` (drain): closes the upstream, ends as interrupted;
- cancelling its task (the process dies politely): closes the upstream, writes nothing; the reaper ends it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, TypeAlias, assert_never

from streaming.appender import Appender
from streaming.errors import UpstreamError
from streaming.events import (
    Body,
    Cancelled,
    Done,
    Error,
    Event,
    ReasoningDelta,
    Start,
    Terminal,
    TextDelta,
    ToolComplete,
    ToolDelta,
    Usage,
    lines_of,
)
from streaming.journal import Journal
from streaming.lifecycle import DRIVER_LOST
from streaming.log.ports import Ref
from streaming.markdown import BlockRenderer
from streaming.snapshot import Block, fold
from streaming.store import Job, Outcome, Store
from streaming.upstream.estimate import complete_usage, estimate_input, estimate_tokens
from streaming.upstream.faults import SAID_CHARS, unexpected
from streaming.upstream.ports import (
    ChatRequest,
    Chunk,
    FinishChunk,
    Opened,
    ReasoningChunk,
    TextChunk,
    ToolChunk,
    ToolCompleteChunk,
    Upstream,
    UpstreamCall,
    UsageChunk,
)
from streaming.upstream.turns import AtOnce, Place

logger = logging.getLogger(__name__)

# Finds the upstream for a job and words the request; raises UpstreamError when that is impossible.
Prepare: TypeAlias = Callable[[Job], tuple[Upstream, ChatRequest]]
# Asks for a place among those who wait for a job's model.
Queue: TypeAlias = Callable[[Job], Place]

CLOSE_PROOF_S = 2.0
# Repeating a call is only safe while nothing of its answer was seen, and costs the operator money.
RETRIES = 2
RETRY_BASE_S = 0.5
RETRY_AFTER_MAX_S = 20.0
STORE_RETRY_S = (0.1, 0.5, 1.0, 2.0, 5.0)
RENDER_AFTER_S = 0.25


@dataclass(slots=True)
class Timings:
    """Moments of one generation in epoch ms; see README for the names."""

    clock: Callable[[], int]
    marks: dict[str, int] = field(default_factory=dict)
    _last_chunk: int = 0
    _longest_gap: int = 0

    def mark(self, name: str) -> None:
        self.marks.setdefault(name, self.clock())

    def content(self) -> None:
        now = self.clock()
        if not self._last_chunk:
            self.marks["first_token_at"] = now
        elif now - self._last_chunk > self._longest_gap:
            self._longest_gap = now - self._last_chunk
        self._last_chunk = now

    def ended(self) -> dict[str, int]:
        """Give all moments, the end included."""
        self.mark("ended_at")
        if self._last_chunk:
            self.marks |= {"last_token_at": self._last_chunk, "longest_gap_ms": self._longest_gap}
        return dict(self.marks)


class Driver:
    """
    Drives `job` as the holder of an attempt that the log granted.

    Run it once. It ends when the generation ended, or when it must not write any more.
    """

    def __init__(self, job: Job, journal: Journal, appender: Appender, store: Store, clock: Callable[[], int]) -> None:
        self._loop = asyncio.get_running_loop()
        self._job = job
        self._journal = journal
        self._appender = appender
        self._store = store
        self._timings = Timings(clock, {"queued_at": job.queued_at})
        self._renderer = BlockRenderer()
        self._render_timer: asyncio.TimerHandle | None = None
        self._text: list[str] = []
        self._beside: list[str] = []  # Reasoning and arguments of tools: tokens that are no text.
        self._blocks: list[Block] = []
        self._usage: UsageChunk | None = None
        self._begun = False
        self._stop = asyncio.Event()
        self._is_closed = True  # No connection to the upstream is open, as far as is proven.

    async def run(self, prepare: Prepare, queue: Queue = lambda _: AtOnce()) -> None:
        """Wait in the queue, then drive from the first event to the terminal one."""
        self._appender.open(self._journal, self._stop.set)
        place = queue(self._job)
        try:
            if await self._turn_came(place) and await self._store.begin(self._job.ref.gen, self._journal.attempt):
                await self._drive(prepare)
        finally:
            place.give_back()
            self._cancel_render_timer()
            self._appender.close(self._journal)

    @property
    def ref(self) -> Ref:
        return self._job.ref

    def look(self) -> None:
        """A hint that a cancel may have been asked for: ask the log now."""
        self._appender.write(self._journal, now=True)

    def abandon(self) -> None:
        """The generation was deleted: close the upstream, and write nothing more."""
        self._journal.fenced = True
        self._stop.set()

    def interrupt(self) -> None:
        """End as interrupted: this process must go."""
        self._stop.set()

    async def _turn_came(self, place: Place) -> bool:
        """
        Wait for the turn, or for a cancel, which needs none.

        The generation is still queued: the database says so, and the log has no event of it. So when
        this process must go, whoever takes the lease next begins anew, and nothing was lost.
        """
        if self._journal.cancel is not None:
            return True
        stopping: asyncio.Future[Any] = asyncio.create_task(self._stop.wait(), name=f"stop {self._job.ref.gen}")
        try:
            await asyncio.wait({place.granted, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
        return self._journal.cancel is not None or not self._stop.is_set()

    async def _drive(self, prepare: Prepare) -> None:
        if self._journal.cancel is not None:
            await self._end(self._cancelled())
            return
        self._timings.mark("started_at")
        self._record(Start(self._job.model, self._job.pane, self._job.params))
        finish = await self._finish_of(prepare)
        if isinstance(finish, UpstreamError):
            logger.warning("generation %s: %s: %s %s", self._job.ref.gen, finish.code, finish.message, finish.detail)
            await self._end(self._failed(finish))
        elif self._journal.fenced:
            logger.warning("generation %s: taken over or deleted; this driver stops", self._job.ref.gen)
        elif self._journal.cancel is not None:
            await self._end(self._cancelled())
        elif finish is None:
            await self._end(self._lost("The server was shut down while this answer was being written."))
        else:
            await self._end(self._done(finish))

    async def _finish_of(self, prepare: Prepare) -> FinishChunk | UpstreamError | None:
        """Give how the call ended; None when it was stopped. A fault of ours ends the answer too, and at once."""
        try:
            return await self._call_with_retries(*prepare(self._job))
        except UpstreamError as exc:
            return exc
        except Exception as exc:  # noqa: BLE001 (its words may hold a header with its key)
            return unexpected(exc)

    async def _call_with_retries(self, upstream: Upstream, request: ChatRequest) -> FinishChunk | None:
        for attempt in range(RETRIES + 1):
            # A driver that slept may have lost its lease, or a stop was asked for: then no model is called any more.
            await self._appender.prove(self._journal)
            if self._stop.is_set():
                return None
            call = upstream.call(request)
            try:
                return await self._call(call)
            except UpstreamError as exc:
                if self._begun or not exc.retryable or attempt == RETRIES or self._stop.is_set():
                    raise
                await self._pause(exc.retry_after_s, attempt)
        raise AssertionError("the last try returns or raises")

    async def _call(self, call: UpstreamCall) -> FinishChunk | None:
        """Read one call to its end, or close it when told to stop. Gives its finish, None when it was stopped."""
        self._is_closed = False
        reading = asyncio.create_task(self._read(call), name=f"read {self._job.ref.gen}")
        stopping = asyncio.create_task(self._stop.wait(), name=f"stop {self._job.ref.gen}")
        try:
            await asyncio.wait({reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return None if self._stop.is_set() else await reading
        finally:
            stopping.cancel()
            # Closed first: that wakes the reader at once, whatever it waits for.
            await self._close(call)
            reading.cancel()
            await asyncio.gather(reading, stopping, return_exceptions=True)

    async def _read(self, call: UpstreamCall) -> FinishChunk:
        async for chunk in call:
            if isinstance(chunk, FinishChunk):
                return chunk
            self._take(chunk)
        raise UpstreamError("incomplete_stream", "The model's answer broke off without its end sign.", retryable=True)

    async def _close(self, call: UpstreamCall) -> None:
        try:
            async with asyncio.timeout(CLOSE_PROOF_S):
                self._is_closed = await asyncio.shield(call.close())
        except TimeoutError:
            logger.warning("generation %s: its upstream is not proven closed", self._job.ref.gen)
        except Exception as exc:  # noqa: BLE001 (the answer may be whole all the same)
            logger.error("generation %s: closing its upstream: %s", self._job.ref.gen, unexpected(exc).detail)  # noqa: TRY400

    async def _pause(self, retry_after_s: float | None, attempt: int) -> None:
        # Full jitter, so that many panes of one upstream do not come back together.
        delay = random.uniform(0, RETRY_BASE_S * 2**attempt) + min(retry_after_s or 0.0, RETRY_AFTER_MAX_S)  # noqa: S311
        try:
            async with asyncio.timeout(delay):
                await self._stop.wait()
        except TimeoutError:
            return

    def _take(self, chunk: Chunk) -> None:
        match chunk:
            case Opened():
                self._timings.mark("connected_at")
            case TextChunk(text=text):
                self._take_text(_valid(text))
            case ReasoningChunk(text=text):
                self._beside.append(text)
                self._content(ReasoningDelta(_valid(text)))
            case ToolChunk(call=call, arguments=arguments, name=name):
                self._beside.append(arguments)
                self._content(ToolDelta(_valid(call), _valid(arguments), None if name is None else _valid(name)))
            case ToolCompleteChunk(call=call, name=name, arguments=arguments):
                self._content(ToolComplete(_valid(call), _valid(name), _valid(arguments)))
            case UsageChunk():
                self._usage = chunk
            case FinishChunk():
                pass
            case _ as never:
                assert_never(never)

    def _take_text(self, text: str) -> None:
        self._text.append(text)
        self._content(TextDelta(text))
        self._renderer.feed(text)
        self._render()

    def _content(self, body: Body) -> None:
        # The first is what a person waits for; the others have a round in common.
        is_first, self._begun = not self._begun, True
        self._timings.content()
        self._journal.record(body)
        self._appender.write(self._journal, now=is_first)

    def _record(self, body: Body) -> None:
        self._journal.record(body)
        self._appender.write(self._journal)

    def _render(self) -> None:
        now = int(self._loop.time() * 1000)
        if self._renderer.due(now):
            self._cancel_render_timer()
            self._show(self._renderer.views(now))
        elif self._render_timer is None:
            # The upstream may pause right after a line: it is shown then too.
            self._render_timer = self._loop.call_later(RENDER_AFTER_S, self._render_late)

    def _render_late(self) -> None:
        self._render_timer = None
        now = int(self._loop.time() * 1000)
        if self._renderer.due(now):
            self._show(self._renderer.views(now))

    def _show(self, rendered: list[Any]) -> None:
        for block in rendered:
            self._blocks.extend(Block("", sealed=False) for _ in range(len(self._blocks), block.index + 1))
            self._blocks[block.index] = Block(block.html, block.sealed)
            self._journal.show(block.index, block.html, sealed=block.sealed, length=block.length)
        if rendered:
            self._appender.write(self._journal)

    def _cancel_render_timer(self) -> None:
        if self._render_timer is not None:
            self._render_timer.cancel()
            self._render_timer = None

    async def _end(self, terminal: Terminal) -> None:
        """Show the whole text, let the database commit the end, then write the terminal event."""
        self._cancel_render_timer()
        self._show(self._renderer.finish())
        if self._usage is not None or self._begun or "connected_at" in self._timings.marks:
            self._record(self._used(finished=isinstance(terminal, Done)))
        await self._appender.flush(self._journal)
        if self._journal.fenced:
            return
        if self._journal.cancel is not None and not isinstance(terminal, Cancelled):
            # It was asked for before the last text was written: the log was away meanwhile, or they crossed.
            terminal = self._cancelled()
        outcome = self._outcome(terminal)
        if await self._commit(outcome):
            self._record(terminal)
            await self._appender.flush(self._journal)

    def _used(self, *, finished: bool) -> Usage:
        known = self._usage or UsageChunk()
        source = "upstream"
        if not finished or known.input is None or known.output is None:
            read, written = estimate_input(self._job.messages), estimate_tokens("".join((*self._beside, *self._text)))
            source, known = complete_usage(known, read=read, written=written, finished=finished)
        return Usage(source, known.input, known.output, known.cached, known.reasoning)

    async def _commit(self, outcome: Outcome) -> bool:
        """Commit the end, however long the database is away: the lease is renewed meanwhile."""
        for attempt in count():
            try:
                return await self._store.finish(self._job.ref.gen, self._journal.attempt, outcome)
            except Exception:
                logger.exception("generation %s: its end is not committed yet", self._job.ref.gen)
                await asyncio.sleep(STORE_RETRY_S[min(attempt, len(STORE_RETRY_S) - 1)])
            if self._journal.fenced:
                break
        return False

    def _outcome(self, terminal: Terminal) -> Outcome:
        end = Event(self._job.ref.gen, self._journal.attempt, self._journal.seq + 1, self._timings.clock(), terminal)
        snapshot = fold(self._journal.snapshot(), end)
        shown = replace(snapshot, blocks=tuple(self._blocks), shown=len(snapshot.text), rendered_seq=snapshot.seq - 1)
        return Outcome(shown, "\n".join((*self._journal.lines(), lines_of([end]))))

    def _done(self, finish: FinishChunk) -> Done:
        text = "".join(self._text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return Done(finish.finish, digest, len(text), self._timings.ended())

    def _cancelled(self) -> Cancelled:
        request = self._journal.cancel
        assert request is not None  # noqa: S101 - for the type checker; the caller looked.
        self._timings.marks["cancel_asked_at"] = request.at
        latency = max(0, self._timings.clock() - request.at)
        upstream = "closed" if self._is_closed else "unproven"
        return Cancelled(request.by, upstream, latency, self._length(), self._timings.ended())

    def _failed(self, exc: UpstreamError) -> Error:
        said = exc.said[:SAID_CHARS] or None
        return Error(exc.code, exc.message, exc.retryable, False, self._length(), self._timings.ended(), said)

    def _lost(self, message: str) -> Error:
        return Error(DRIVER_LOST, message, True, False, self._length(), self._timings.ended())

    def _length(self) -> int:
        return sum(map(len, self._text))


def _valid(text: str) -> str:
    """
    Join surrogate halves and replace lone ones, and NUL.

    One lone half would stop the log for every generation; PostgreSQL would refuse a NUL for ever. Adapters see
    to both; this stands where everything comes through.
    """
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "\ufffd")
