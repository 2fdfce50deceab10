"""Warnings of what comes again and again while something is away."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic

PAUSE_S = 60.0


class Seldom:
    """Warns at once, and then once a minute, with how often it would have: each request or connection would say it."""

    def __init__(self, logger: logging.Logger, clock: Callable[[], float] = monotonic) -> None:
        self._logger = logger
        self._clock = clock
        self._again_at = float("-inf")
        self._unsaid = 0

    def warning(self, message: str, *args: object) -> None:
        now = self._clock()
        if now < self._again_at:
            self._unsaid += 1
            return
        more = f" (and {self._unsaid} times more since the last time)" if self._unsaid else ""
        self._again_at, self._unsaid = now + PAUSE_S, 0
        self._logger.warning("%s%s", message % args, more)


def why(exc: Exception) -> str:
    """Give an exception's words, or its name: a time limit that ran out says nothing."""
    return str(exc) or type(exc).__name__
