"""Ends what has lost its driver when somebody reads it, also where no worker is left to find it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from chatapp.ending import end
from streaming.errors import LogUnavailable
from streaming.log.ports import Ref

logger = logging.getLogger(__name__)


class Lookout:
    """
    Looks after the live generations that readers of this process see, beside their requests.

    `end_lost` ends those of some generations whose driver is lost; it may take as long as a lease.
    """

    def __init__(self, end_lost: Callable[[Sequence[Ref]], Awaitable[None]]) -> None:
        self._end_lost = end_lost
        self._looking: dict[str, asyncio.Task[None]] = {}

    def see(self, refs: Sequence[Ref]) -> None:
        """Look at these soon; those that are being looked at already are not looked at twice."""
        fresh = [ref for ref in refs if ref.gen not in self._looking]
        if fresh:
            task = asyncio.create_task(self._look(fresh), name="look for lost drivers")
            self._looking.update((ref.gen, task) for ref in fresh)

    async def close(self) -> None:
        await end(*set(self._looking.values()))

    async def _look(self, refs: Sequence[Ref]) -> None:
        try:
            await self._end_lost(refs)
        except LogUnavailable as exc:
            logger.warning("whether %d generations have a driver is not known: %s", len(refs), exc)
        except Exception:
            logger.exception("looking for lost drivers failed; the next reader looks again")
        finally:
            for ref in refs:
                del self._looking[ref.gen]
