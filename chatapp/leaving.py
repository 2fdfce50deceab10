"""What a web process does when it is told to stop: end what never ends by itself, and finish the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Left(Exception):
    """This process is leaving: the reader is to connect again, and will meet another."""


class Leaving:
    """
    Knows the visits of one process: every request and connection that it serves.

    `begin` is final. From then on live connections end, each where it says that it can be interrupted.
    """

    def __init__(self) -> None:
        self._begun = False
        self._visits = 0
        self._alone = asyncio.Event()
        self._interruptible: set[asyncio.Task[object]] = set()

    @contextmanager
    def visit(self) -> Iterator[None]:
        """Count a request or connection for as long as it lasts."""
        self._visits += 1
        self._alone.clear()
        try:
            yield
        finally:
            self._visits -= 1
            if not self._visits:
                self._alone.set()

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """
        Let `begin` end this block of the running task.

        Raises:
            Left: it did, or had begun before.
        """
        if self._begun:
            raise Left
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - for the type checker: only tasks await.
        self._interruptible.add(task)
        try:
            yield
        except asyncio.CancelledError:
            # Somebody else may have cancelled it too, and then it ends for them.
            if not self._begun or task.uncancel():
                raise
            raise Left from None
        finally:
            self._interruptible.discard(task)

    def begin(self) -> None:
        self._begun = True
        for task in self._interruptible:
            task.cancel()

    async def alone(self) -> None:
        """Wait until nothing is served any more."""
        if self._visits:
            await self._alone.wait()


leaving = Leaving()
