"""Follows one conversation for one connection: from any cursor, without gap, with bounded memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from streaming.errors import LogUnavailable
from streaming.frames import PING, RESYNC, cursor_key, events_frame, snapshot_frame
from streaming.log.codec import is_to_come
from streaming.log.ports import RETENTION_MS, Kind, Log, Ref
from streaming.snapshot import snapshot_to_dict
from streaming.tailer import News, Tailer

# One frame of a 60 Hz screen: more frames could not be seen.
FRAME_S = 0.016
HEARTBEAT_S = 15.0
MAX_BEHIND_BYTES = 256 * 1024
MAX_UNACKNOWLEDGED_BYTES = 1024 * 1024
# A client that acknowledges nothing for this long is gone or asleep; it syncs when it comes back.
ACKNOWLEDGE_S = 60.0
# A log is trimmed by age; a cursor near that age may have lost entries behind it.
TRIM_MARGIN_MS = 60_000
_PAGE = 2_000


@dataclass(slots=True)
class Frame:
    text: str
    cursor: str | None = None  # None: the reader's cursor stays


class Backlog:
    """
    What one follower has not been sent yet.

    Beyond `MAX_BEHIND_BYTES` the entries are let go, and only which generations they touched stays:
    the follower then gets their snapshot. Pure.
    """

    def __init__(self) -> None:
        self.cursor = ""
        self.behind = False
        self.lost = False  # something came that only a sync can tell
        self.touched: set[int] = set()
        self._notices = False
        self._encoded: list[str] = []
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self.cursor)

    def add(self, news: Sequence[News]) -> None:
        for one in news:
            self.cursor = one.cursor
            if one.json is None:
                self.lost = True
                continue
            self._bytes += len(one.json)
            if one.kind is Kind.NOTICE:
                self._notices = True
            else:
                self.touched.add(one.number)
            self._encoded.append(one.json)
            if self._bytes > MAX_BEHIND_BYTES:
                self.behind = True
                self._encoded.clear()
        # No snapshot of a generation tells of a new turn.
        self.lost = self.lost or (self.behind and self._notices)

    def frame(self) -> Frame:
        """Give all as one events frame; only while neither behind nor lost."""
        return Frame(events_frame(self.cursor, self._encoded), self.cursor)


class Follower:
    """
    Use as an async context manager, and iterate `frames`, which ends only by itself when the reader
    stopped acknowledging. `names` maps the conversation's generation numbers to UUIDs.
    """

    def __init__(
        self,
        tailer: Tailer,
        log: Log,
        conversation: str,
        cursor: str,
        names: Mapping[int, str],
        *,
        max_unacknowledged_bytes: int | None = None,
    ) -> None:
        self._tailer = tailer
        self._log = log
        self._conversation = conversation
        self._cursor = cursor
        self._names = dict(names)
        self._backlog = Backlog()
        self._bell = _Bell()
        self._window = _Window(max_unacknowledged_bytes)
        self._joined_at = ""
        self._early: list[News] | None = []  # live news that came while catching up
        self._sink = self._receive  # One bound method, so that it can be found again to unwatch.

    async def __aenter__(self) -> Self:
        self._joined_at = await self._tailer.watch(self._conversation, self._names, self._sink)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tailer.unwatch(self._conversation, self._sink)
        self._bell.close()

    def acknowledge(self, cursor: str) -> None:
        """The reader has applied everything up to `cursor`."""
        self._window.acknowledge(cursor)

    async def frames(self) -> AsyncGenerator[Frame, None]:
        if not await self._catch_up():
            yield Frame(RESYNC)
        while True:
            if not await self._bell.rings():
                yield Frame(PING)
                continue
            if not self._backlog:
                continue  # It went out with the frame before.
            if not await self._window.opens():
                return
            frame = await self._next()
            self._window.sent(frame)
            yield frame

    def _receive(self, news: Sequence[News]) -> None:
        if self._early is not None:
            self._early.extend(news)
            return
        self._backlog.add(news)
        self._bell.ring()

    async def _catch_up(self) -> bool:
        """Read what lies between the reader's cursor and the tailer's, before the live news. False: it must sync."""
        try:
            known = await self._read_missed()
        except LogUnavailable:
            known = False
        early, self._early = self._early or [], None
        if known:
            self._backlog.add(early)
        if self._backlog:
            self._bell.ring()
        return known

    async def _read_missed(self) -> bool:
        if not await self._is_of_this_log():
            return False
        async for news in self._between(self._cursor, self._joined_at):
            self._backlog.add(news)
        early = self._early or []
        count = len(early)
        if any(one.json is None for one in early):
            # They came before the entry was read that names their generation.
            early[:count] = [one async for news in self._between(self._joined_at, early[-1].cursor) for one in news]
        return True

    async def _between(self, after: str, until: str) -> AsyncGenerator[list[News], None]:
        # A cursor beyond the tailer's is all right: what it has already comes again and is skipped.
        while cursor_key(after) < cursor_key(until):
            logged = await self._log.range(self._conversation, after, until, _PAGE)
            if not logged:
                return
            yield self._tailer.encode(self._conversation, logged)
            after = logged[-1].cursor

    async def _is_of_this_log(self) -> bool:
        """A cursor is a moment: one from the future, or from before what the log keeps, can't be gone on from."""
        position, now = await self._log.position(self._conversation)
        is_old = cursor_key(self._cursor)[0] <= now - RETENTION_MS + TRIM_MARGIN_MS
        return not is_old and not is_to_come(self._cursor, position, now)

    async def _next(self) -> Frame:
        sent, self._backlog = self._backlog, Backlog()
        if sent.lost:
            return Frame(RESYNC)
        return await self._snapshot(sent) if sent.behind else sent.frame()

    async def _snapshot(self, sent: Backlog) -> Frame:
        # The frame carries the cursor up to which everything was sent or is in it. The state may be
        # newer; what comes again is skipped by seq.
        numbers = sorted(sent.touched)
        refs = [Ref(self._conversation, number, self._tailer.name(self._conversation, number)) for number in numbers]
        try:
            snapshot = await self._log.snapshot(self._conversation, refs)
        except LogUnavailable:
            return Frame(RESYNC)
        if len(snapshot.generations) < len(refs):
            return Frame(RESYNC)
        return Frame(snapshot_frame(sent.cursor, map(snapshot_to_dict, snapshot.generations.values())), sent.cursor)


class _Bell:
    """
    Wakes a follower for news, at most once a frame's time, and for a heartbeat.

    It runs for each frame of each reader, so it keeps one timer going in place of one for each wait.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[bool] | None = None
        self._rung = False
        self._rang_at = 0.0
        self._waits_since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def ring(self) -> None:
        self._rung = True
        if self._waiter is not None:
            self._wake()

    async def rings(self) -> bool:
        """Wait for news. False when there was none for `HEARTBEAT_S`."""
        self._waits_since = self._loop.time()
        self._waiter = self._loop.create_future()
        self._wake()
        try:
            return await self._waiter
        finally:
            self._waiter = None

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _wake(self) -> None:
        """Let the waiter go if it is time, else look again when it may be."""
        now = self._loop.time()
        due = self._rang_at + FRAME_S if self._rung else self._waits_since + HEARTBEAT_S
        if now < due:
            self._look_at(due)
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(self._rung)
            self._rung, self._rang_at = False, now

    def _look_at(self, due: float) -> None:
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._waiter is not None:
            self._wake()


class _Window:
    """How much may be on its way without the reader's word that it came."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._sent: deque[tuple[str, int]] = deque()
        self._bytes = 0
        self._room = asyncio.Event()

    def sent(self, frame: Frame) -> None:
        if self._limit is not None and frame.cursor is not None:
            self._sent.append((frame.cursor, len(frame.text)))
            self._bytes += len(frame.text)

    def acknowledge(self, cursor: str) -> None:
        upto = cursor_key(cursor)
        while self._sent and cursor_key(self._sent[0][0]) <= upto:
            self._bytes -= self._sent.popleft()[1]
        self._room.set()

    async def opens(self) -> bool:
        """Wait until something may be sent. False when the reader stayed silent for too long."""
        if self._limit is None:
            return True
        try:
            async with asyncio.timeout(ACKNOWLEDGE_S):
                while self._bytes >= self._limit:
                    self._room.clear()
                    await self._room.wait()
        except TimeoutError:
            return False
        return True
