"""Which generation a worker's free slot is given to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

# Beyond so many that others took meanwhile, a slot takes the one that it was told of.
TRIES = 20


class Slots:
    """
    The slots of one worker process. `drive` says whether it was this process's turn; `line` gives those
    that wait, in fair order.

    Messages come in the order of asking. While there are free slots that order is as good as any, so the
    line is looked at only by the last free one: then others may have waited longer, or have less under
    way. Each message takes one generation, its own or another, so none is left without one.
    """

    def __init__(
        self, drive: Callable[[str], Awaitable[bool]], line: Callable[[], Awaitable[list[str]]], slots: int
    ) -> None:
        self._drive = drive
        self._line = line
        self._free = asyncio.Semaphore(slots)
        self._closed = False
        self._taken: set[str] = set()
        self._offered: set[asyncio.Task[None]] = set()

    async def fill(self, gen: str) -> None:
        """Take one generation to its end: `gen`, or one that comes before it. Waits for a free slot."""
        async with self._free:
            if self._free.locked() or not await self._take(gen):
                await self._take_next(gen)

    def offer(self, gen: str) -> bool:
        """Take a generation that no message brought, beside whatever else goes on. False without a free slot."""
        if self._closed or self._free.locked():
            return False
        task = asyncio.create_task(self._fill_offered(gen), name=f"drive {gen}")
        self._offered.add(task)
        task.add_done_callback(self._offered.discard)
        return True

    def close(self) -> None:
        """Take no more offers: this process comes to its end."""
        self._closed = True

    async def _fill_offered(self, gen: str) -> None:
        try:
            await self.fill(gen)
        except Exception:
            logger.exception("generation %s: could not be driven; it is offered again", gen)

    async def _take_next(self, gen: str) -> None:
        tried: set[str] = set()
        while len(tried) < TRIES:
            waiting = [one for one in await self._line() if one not in self._taken and one not in tried]
            if not waiting:
                break
            if await self._take(waiting[0]):
                return
            tried.add(waiting[0])
        await self._take(gen)

    async def _take(self, gen: str) -> bool:
        # Noted before the claim is asked for, so that two free slots do not ask for the same one.
        if gen in self._taken:
            return False
        self._taken.add(gen)
        try:
            return await self._drive(gen)
        finally:
            self._taken.discard(gen)
