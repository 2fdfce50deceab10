"""Writes the journals of one worker process to the log: at once when idle, in batches under load."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from streaming.errors import LogUnavailable
from streaming.journal import Journal
from streaming.log.ports import Log

logger = logging.getLogger(__name__)

# A lease lasts 10 s: one renewal that only its time limit ends (5 s) may fail before it is lost.
RENEW_S = 3.0
# Even rounds that nobody may wait for keep this distance.
HURRY_S = 0.005
# Other rounds keep this distance, and neighbouring tokens are joined meanwhile, which lowers what a token costs from
# here to the page; an eye sees no difference below 50 ms. Beside its tokens a round costs Redis 170 bytes received and
# 120 of append-only file, which its generations share, and for each of them 230 and 330 more. So one that is alone may
# wait a little longer; with n the distance follows n**0.5, and a hundred wait for 17 ms.
PACE_S, PACE_ALONE_S, PACE_OF_ONE_S, PACE_MAX_S = 0.016, 0.012, 0.0017, 0.05
RETRY_S = (0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(slots=True)
class _Open:
    journal: Journal
    changed: Callable[[], None]
    written_at: float
    waiting: list[asyncio.Future[None]] = field(default_factory=list)

    def ask(self) -> list[asyncio.Future[None]]:
        """Give those who wait for the answer to what is sent now."""
        waiting, self.waiting = self.waiting, []
        return waiting


class Appender:
    """
    One loop for all generations of a process. Between two rounds deltas collect; a round writes all that is there,
    together, so that a reader of many logs wakes once for it.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        # asyncio asks the operating system who it is each time it is asked for its loop.
        self._loop = asyncio.get_running_loop()
        self._open: dict[Journal, _Open] = {}
        self._dirty: dict[Journal, float] = {}  # and not before when, by the loop's clock
        self._hurry = False
        self._idle = False
        self._round_at = 0.0  # when the last round began
        self._wake = asyncio.Event()

    def open(self, journal: Journal, changed: Callable[[], None]) -> None:
        """Serve a journal. `changed` is called when a cancel request or a newer driver was found."""
        self._open[journal] = _Open(journal, changed, self._loop.time())

    def close(self, journal: Journal) -> None:
        self._open.pop(journal, None)
        self._dirty.pop(journal, None)

    def write(self, journal: Journal, *, now: bool = False) -> None:
        """
        Write what the journal holds, soon. Without news this renews the lease and asks for cancels.

        `now` does not wait for the next round.
        """
        if now or journal not in self._dirty:  # One that the log refused waits until it is tried again.
            self._dirty[journal] = 0.0
        self._hurry = self._hurry or now
        if now or self._idle:
            self._wake.set()

    async def flush(self, journal: Journal) -> None:
        """Wait until the log holds all of the journal, or refuses it for good (`journal.fenced`)."""
        while not (journal.settled or journal.fenced):
            await self.prove(journal)

    async def prove(self, journal: Journal) -> None:
        """
        Write what the journal holds, and wait until the log has answered: `journal.fenced` is true of this moment.

        An answer that was under way before does not count: this process may have slept in between.
        """
        waiting = self._loop.create_future()
        self._open[journal].waiting.append(waiting)
        self.write(journal, now=True)
        await waiting

    async def run(self) -> None:
        """Serve until cancelled."""
        failures = 0
        while True:
            journals = await self._due()
            if await self._round_trip(journals):
                failures = 0
                await asyncio.sleep(HURRY_S)
            else:
                self._dirty.update(dict.fromkeys(journals, 0.0))
                await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S) - 1)])
                failures += 1

    async def _due(self) -> list[Journal]:
        """Wait until it is time for a round and something is to be written; give all that is."""
        while True:
            now = self._loop.time()
            # Here, where each round passes: a process that is never idle has generations that say nothing for long.
            self._renew(now)
            due = [journal for journal, at in self._dirty.items() if at <= now]
            left = self._round_at + self._distance() - now
            if due and (self._hurry or left <= 0):
                break
            self._idle = not due
            await self._woken(left if due else RENEW_S / 3)
        self._hurry, self._round_at = False, now
        for journal in due:
            del self._dirty[journal]
        return due

    async def _woken(self, seconds: float) -> None:
        self._wake.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def _distance(self) -> float:
        count = max(1, len(self._open))
        return min(max(PACE_S + PACE_ALONE_S / count, PACE_OF_ONE_S * math.sqrt(count)), PACE_MAX_S)

    def _renew(self, now: float) -> None:
        late = (opened.journal for opened in self._open.values() if opened.written_at < now - RENEW_S)
        self._dirty.update(dict.fromkeys(late, 0.0))

    async def _round_trip(self, journals: list[Journal]) -> bool:
        opened = [self._open[journal] for journal in journals if journal in self._open]
        if not opened:
            return True
        batches = [one.journal.take() for one in opened]
        asked = [one.ask() for one in opened]
        try:
            answers = await self._log.append(batches)
        except LogUnavailable as exc:
            logger.warning("%d generations wait for the log: %s", len(opened), exc)
            for one, waiting in zip(opened, asked, strict=True):
                one.waiting += waiting
            return False
        now = self._loop.time()
        for one, waiting, answer in zip(opened, asked, answers, strict=True):
            one.journal.settle(answer)
            one.written_at = now
            if isinstance(answer, LogUnavailable):
                # Something is wrong with this one's keys; its neighbours do not wait for it.
                logger.warning("generation %s: %s", one.journal.ref.gen, answer)
                one.waiting += waiting
                self._dirty[one.journal] = now + RETRY_S[-1]
            else:
                self._tell(one, waiting)
        return True

    def _tell(self, one: _Open, waiting: list[asyncio.Future[None]]) -> None:
        journal = one.journal
        if journal.fenced or journal.cancel:
            one.changed()
        if journal.settled or journal.fenced:
            for each in waiting:
                if not each.done():
                    each.set_result(None)
        else:
            # The log lost something, or more was recorded meanwhile and already asks to be written.
            one.waiting += waiting
            self.write(journal, now=bool(one.waiting))
