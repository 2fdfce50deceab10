"""Writes the journals of one worker process to the log: at once when idle, in batches under load."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from streaming.errors import LogUnavailable
from streaming.journal import Journal
from streaming.log.ports import Log

logger = logging.getLogger(__name__)

# A lease lasts 10 s; three renewals may fail before it is lost.
RENEW_S = 3.0
# Two round trips keep this distance: what comes meanwhile goes together.
PACE_S = 0.005
# A process writes at most so many batches a second. An idle one writes each token at once; a hundred
# generations write every 20 ms each, and neighbouring tokens are joined. That lowers what a token costs
# from here to the page; a frame or two more are far below what an eye can see.
BATCHES_A_SECOND = 5_000
RETRY_S = (0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(slots=True)
class _Open:
    journal: Journal
    changed: Callable[[], None]
    written_at: float
    next_at: float = 0.0  # Its next turn to be written.
    waiting: list[asyncio.Future[None]] = field(default_factory=list)

    def ask(self) -> list[asyncio.Future[None]]:
        """Give those who wait for the answer to what is sent now."""
        waiting, self.waiting = self.waiting, []
        return waiting


class Appender:
    """
    One loop for all generations of a process. While one round trip is under way, deltas collect.

    Append order within a journal is kept; journals do not wait for each other's answers.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        # asyncio asks the operating system who it is each time it is asked for its loop.
        self._loop = asyncio.get_running_loop()
        self._open: dict[Journal, _Open] = {}
        self._dirty: dict[Journal, float] = {}  # and when it is due, by the loop's clock
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

        `now` does not wait for this journal's turn.
        """
        due = 0.0 if now else max(self._open[journal].next_at, self._loop.time())
        self._dirty[journal] = min(due, self._dirty.get(journal, due))
        self._wake.set()

    async def turn(self, journal: Journal) -> None:
        """
        Wait until a journal that has just been written may be written again.

        What would only wait to be written need not be read yet either: read later, neighbouring chunks
        cost one read together.
        """
        wait = self._open[journal].next_at - PACE_S - self._loop.time()
        if wait > PACE_S:
            await asyncio.sleep(wait)

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
                await asyncio.sleep(PACE_S)
            else:
                self._dirty.update(dict.fromkeys(journals, 0.0))
                await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S) - 1)])
                failures += 1

    async def _due(self) -> list[Journal]:
        """Wait until at least one journal is to be written; give all that are."""
        time = self._loop.time
        while True:
            now = time()
            due = [journal for journal, at in self._dirty.items() if at <= now]
            if due:
                self._set_turns(due)
                return due
            if self._dirty:
                # Not woken by each token: looking again soon costs less.
                await asyncio.sleep(PACE_S)
                continue
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RENEW_S / 3):
                    await self._wake.wait()
            self._renew(time())

    def _set_turns(self, due: list[Journal]) -> None:
        # From when it was due, not from when it was written: tokens that come no faster than turns do wait for none.
        distance = len(self._open) / BATCHES_A_SECOND
        for journal in due:
            at = self._dirty.pop(journal)
            if journal in self._open:
                self._open[journal].next_at = at + distance

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
