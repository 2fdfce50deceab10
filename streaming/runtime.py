"""One worker process: its appender, its drivers, its ear for cancels, and its reaper."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from enum import Enum, auto

from streaming.appender import Appender
from streaming.driver import Driver, Prepare, Queue
from streaming.errors import LogUnavailable
from streaming.journal import Journal
from streaming.lifecycle import TERMINAL, State
from streaming.log.ports import LEASE_MS, RETENTION_MS, Lease, Log
from streaming.store import Job, Live, Store
from streaming.takeover import settle
from streaming.upstream.turns import AtOnce

logger = logging.getLogger(__name__)

# Who ended so recently may have died before the log had the end. A longer look, as far back as logs are kept,
# finds what ended while the log was away for long.
ENDED_MS = 2 * 60_000
LONG_LOOK_MS = 60_000
# Taking over reads whole answers; more at once would hold up the streams of this process.
TAKEOVERS = 4
# Together with a lease, and with jitter, below the 12 s in which followers are to know that a driver is lost.
REAP_S = 1.5
# A task message that has not led to a claim by now may be lost: send it again, ever more rarely.
UNCLAIMED_MS = 5_000
UNCLAIMED_MAX_MS = 60_000
# After Redis was away, drivers need a moment to renew leases that ran out meanwhile.
QUIET_MS = 5_000
LISTEN_RETRY_S = 1.0
INTERRUPT_S = 10.0


class Runtime:
    """
    Hosts the drivers of one process on one event loop.

    `dispatch` finds a worker for a generation that none has claimed; it must not block. `queue` gives a job its place
    among those who wait for its model.
    """

    def __init__(
        self,
        log: Log,
        store: Store,
        prepare: Prepare,
        dispatch: Callable[[str], None],
        clock: Callable[[], int],
        queue: Queue = lambda _: AtOnce(),
    ) -> None:
        self._log = log
        self._store = store
        self._prepare = prepare
        self._dispatch = dispatch
        self._clock = clock
        self._queue = queue
        self._appender = Appender(log)
        self._drivers: dict[str, Driver] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False
        self._sent_back: set[str] = set()
        self._watch = Watch()
        self._taking: set[asyncio.Task[None]] = set()
        self._settling = asyncio.Semaphore(TAKEOVERS)
        self._long_look_at = 0

    async def run(self) -> None:
        """Serve until cancelled. `drive` works only meanwhile."""
        async with asyncio.TaskGroup() as group:
            for part in (self._appender.run(), self._listen(), self._reap()):
                group.create_task(part)

    async def drive(self, gen: str) -> bool:
        """
        Drive a generation to its end, or end or repair one whose driver is gone.

        Gives False at once when it is not this process's turn: unknown, held by another, ended. While draining
        it is dispatched again, once.
        """
        if gen in self._drivers:
            return False
        job = await self._store.job(gen)
        if job is None:
            return False
        if self._draining:
            if gen not in self._sent_back:
                self._sent_back.add(gen)
                self._dispatch(gen)
            return False
        claim = await self._log.claim(job.ref, job.attempt)
        if not claim.granted:
            return False
        async with self._settling:
            settled = await settle(self._log, self._store, job, claim, self._clock)
        if not settled:
            journal = Journal(job.ref, claim.attempt)
            journal.cancel = claim.cancel
            await self._host(job, journal)
        return True

    async def drain(self, grace_s: float) -> None:
        """Take no more; let drivers finish for `grace_s`, then end the rest as interrupted."""
        self._draining = True
        try:
            async with asyncio.timeout(grace_s):
                await self._idle.wait()
        except TimeoutError:
            for driver in self._drivers.values():
                driver.interrupt()
            async with asyncio.timeout(INTERRUPT_S):
                await self._idle.wait()

    async def _host(self, job: Job, journal: Journal) -> None:
        driver = Driver(job, journal, self._appender, self._store, self._clock)
        self._drivers[job.ref.gen] = driver
        self._idle.clear()
        try:
            await driver.run(self._prepare, self._queue)
        finally:
            del self._drivers[job.ref.gen]
            if not self._drivers:
                self._idle.set()

    async def _listen(self) -> None:
        while True:
            try:
                async for gen in self._log.cancellations():
                    driver = self._drivers.get(gen)
                    if driver is not None:
                        driver.look()
            except LogUnavailable as exc:
                logger.warning("cancel requests are found by polling only: %s", exc)
            await asyncio.sleep(LISTEN_RETRY_S)
            for driver in self._drivers.values():
                driver.look()

    async def _reap(self) -> None:
        while True:
            # Many processes look at the same rows; jitter keeps them from looking together.
            await asyncio.sleep(REAP_S * random.uniform(0.8, 1.2))  # noqa: S311
            try:
                await self._look_for_the_lost()
            except LogUnavailable:
                self._watch.quiet(self._clock())
                self._long_look_at = 0
            except Exception:
                logger.exception("the reaper failed; it looks again in %s s", REAP_S)

    async def _look_for_the_lost(self) -> None:
        now = self._clock()
        is_long = now >= self._long_look_at
        listed = await self._store.live(RETENTION_MS if is_long else ENDED_MS)
        await self._let_go_of_the_deleted({one.ref.gen for one in listed})
        live = [one for one in listed if one.ref.gen not in self._drivers]
        leases = await self._log.leases([one.ref for one in live])
        for one, todo in self._watch.judge(live, leases, self._clock()):
            if todo is Todo.DISPATCH:
                self._dispatch(one.ref.gen)
            elif not self._draining:
                # Beside the reaper: the one taken may turn out to be driven from its start.
                task = asyncio.create_task(self._take_over(one), name=f"take over {one.ref.gen}")
                self._taking.add(task)
                task.add_done_callback(self._taking.discard)
        if is_long:
            self._long_look_at = now + LONG_LOOK_MS

    async def _let_go_of_the_deleted(self, listed: set[str]) -> None:
        """Whoever deletes fences the driver at once. This finds it where Redis was away, or a row went otherwise."""
        for driver in [driver for gen, driver in self._drivers.items() if gen not in listed]:
            # One that was claimed after the list was read has its row.
            if await self._store.job(driver.ref.gen) is not None:
                continue
            try:
                await self._log.remove(driver.ref.conversation, [driver.ref])
            finally:
                driver.abandon()

    async def _take_over(self, one: Live) -> None:
        logger.warning("generation %s: nobody drives it (state %s); taking over", one.ref.gen, one.state)
        try:
            await self.drive(one.ref.gen)
        except Exception:
            logger.exception("generation %s: taking over failed; the reaper looks again", one.ref.gen)


class Todo(Enum):
    DISPATCH = auto()
    TAKE = auto()


class Watch:
    """Judges what needs a driver. Pure but for what it remembers of earlier looks."""

    def __init__(self) -> None:
        self._quiet_until = 0
        self._unknown_since: dict[str, int] = {}
        self._dispatch_at: dict[str, int] = {}

    def quiet(self, now: int) -> None:
        """Judge nothing for a moment: the log was away, and leases could not be renewed."""
        self._quiet_until = now + QUIET_MS

    def judge(self, live: list[Live], leases: list[Lease | None], now: int) -> list[tuple[Live, Todo]]:
        """Say what to do about each generation that needs something. `now` is this process's clock."""
        if now < self._quiet_until:
            return []
        known = {one.ref.gen for one in live}
        self._unknown_since = {gen: at for gen, at in self._unknown_since.items() if gen in known}
        self._dispatch_at = {gen: at for gen, at in self._dispatch_at.items() if gen in known}
        judged = ((one, self._judge(one, lease, now)) for one, lease in zip(live, leases, strict=True))
        return [(one, todo) for one, todo in judged if todo is not None]

    def _judge(self, one: Live, lease: Lease | None, now: int) -> Todo | None:
        if lease is not None and (lease.runs or lease.state in TERMINAL):
            return None
        if one.state in TERMINAL:
            # Committed, and the log does not say so. A log that is gone needs no end: readers sync.
            return Todo.TAKE if lease is not None else None
        if one.state is State.QUEUED and (lease is None or lease.attempt == 0):
            return self._judge_queued(one, now)
        if lease is not None and lease.expires_at <= lease.now:
            return Todo.TAKE
        # The log vanished, or its clock stepped back. Its driver, if it lives, sets it right within its lease.
        since = self._unknown_since.setdefault(one.ref.gen, now)
        return Todo.TAKE if now - since > LEASE_MS else None

    def _judge_queued(self, one: Live, now: int) -> Todo | None:
        # Another machine's clock wrote `queued_at`; it may be ahead of ours.
        due = self._dispatch_at.setdefault(one.ref.gen, min(one.queued_at, now) + UNCLAIMED_MS)
        if now < due:
            return None
        waited = now - one.queued_at
        self._dispatch_at[one.ref.gen] = now + min(max(waited, UNCLAIMED_MS), UNCLAIMED_MAX_MS)
        return Todo.DISPATCH
