"""Writes the journals of one worker process to the log: at once when idle, in batches under load."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from streaming.errors import LogUnavailable
from streaming.journal import Journal
from streaming.log.ports import Log

logger = logging.getLogger(__name__)

# A lease lasts 10 s; three renewals may fail before it is lost.
RENEW_S = 3.0
# Two round trips keep this distance. An idle appender writes at once; a busy one joins what came
# meanwhile, which costs less for each token and is far below what an eye can see.
PACE_S = 0.004
RETRY_S = (0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(slots=True)
class _Open:
    journal: Journal
    changed: Callable[[], None]
    written_at: float
    waiting: list[asyncio.Future[None]] = field(default_factory=list)


class Appender:
    """
    One loop for all generations of a process. While one round trip is under way, deltas collect.

    Append order within a journal is kept; journals do not wait for each other's answers.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._open: dict[Journal, _Open] = {}
        self._dirty: dict[Journal, None] = {}
        self._wake = asyncio.Event()

    def open(self, journal: Journal, changed: Callable[[], None]) -> None:
        """Serve a journal. `changed` is called when a cancel request or a newer driver was found."""
        self._open[journal] = _Open(journal, changed, asyncio.get_running_loop().time())

    def close(self, journal: Journal) -> None:
        self._open.pop(journal, None)
        self._dirty.pop(journal, None)

    def write(self, journal: Journal) -> None:
        """Write what the journal holds, soon. Without news this renews the lease and asks for cancels."""
        self._dirty[journal] = None
        self._wake.set()

    async def flush(self, journal: Journal) -> None:
        """Wait until the log holds all of the journal, or refuses it for good (`journal.fenced`)."""
        while not (journal.settled or journal.fenced):
            waiting = asyncio.get_running_loop().create_future()
            self._open[journal].waiting.append(waiting)
            self.write(journal)
            await waiting

    async def run(self) -> None:
        """Serve until cancelled."""
        failures = 0
        while True:
            await self._until_due()
            journals = list(self._dirty)
            self._dirty.clear()
            self._wake.clear()
            if await self._round_trip(journals):
                failures = 0
                await asyncio.sleep(PACE_S)
            else:
                self._dirty.update(dict.fromkeys(journals))
                await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S) - 1)])
                failures += 1

    async def _until_due(self) -> None:
        while not self._dirty:
            try:
                async with asyncio.timeout(RENEW_S / 3):
                    await self._wake.wait()
            except TimeoutError:
                late = asyncio.get_running_loop().time() - RENEW_S
                self._dirty.update((opened.journal, None) for opened in self._open.values() if opened.written_at < late)
            self._wake.clear()

    async def _round_trip(self, journals: list[Journal]) -> bool:
        opened = [self._open[journal] for journal in journals if journal in self._open]
        if not opened:
            return True
        batches = [one.journal.take() for one in opened]
        try:
            answers = await self._log.append(batches)
        except LogUnavailable as exc:
            logger.warning("%d generations wait for the log: %s", len(opened), exc)
            return False
        now = asyncio.get_running_loop().time()
        for one, answer in zip(opened, answers, strict=True):
            one.journal.settle(answer)
            one.written_at = now
            self._tell(one)
        return not any(isinstance(answer, LogUnavailable) for answer in answers)

    def _tell(self, one: _Open) -> None:
        journal = one.journal
        if journal.fenced or journal.cancel:
            one.changed()
        if journal.settled or journal.fenced:
            for waiting in one.waiting:
                if not waiting.done():
                    waiting.set_result(None)
            one.waiting.clear()
        else:
            # The log lost something, or more was recorded meanwhile and already asks to be written.
            self.write(journal)
