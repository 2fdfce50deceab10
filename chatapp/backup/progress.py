"""Tells a person who waits how far a long copy has come."""

from __future__ import annotations

import time
from collections.abc import Callable

# What is done sooner needs no word.
EVERY_S = 2.0


class Progress:
    """Says `what` with a percentage now and then; `total` is in the unit of `add`."""

    def __init__(self, say: Callable[[str], object], what: str, total: int) -> None:
        self._say = say
        self._what = what
        self._total = max(total, 1)
        self._done = 0
        self._said_at = time.monotonic()

    def add(self, amount: int) -> None:
        self.reach(self._done + amount)

    def reach(self, done: int) -> None:
        self._done = done
        if time.monotonic() - self._said_at >= EVERY_S:
            self._said_at = time.monotonic()
            self._say(f"{self._what}: {min(100, 100 * done // self._total)} %")
