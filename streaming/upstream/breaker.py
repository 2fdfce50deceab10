"""Leaves a service alone that keeps failing, and tries again after growing pauses. Pure: the time is given."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from streaming.errors import UpstreamError

FAILURES_TO_REST: Final = 5
FIRST_PAUSE_S: Final = 10.0
LONGEST_PAUSE_S: Final = 300.0
# The service itself is unwell. All other codes come from one that is there, and answers.
UNWELL: Final = frozenset(
    {
        "connect_refused", "connect_failed", "connect_timeout", "dns_failure", "tls_failure", "connection_lost",
        "first_byte_timeout", "overloaded", "upstream_error",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rest:
    """Why and how long a service is left alone. Times are epoch seconds."""

    since: float  # The first of the failures in a row.
    until: float  # The next try.
    code: str  # How the newest one failed.


class Breaker:
    """
    Counts the failures in a row of one service.

    After a rest one call is let through as a probe. Until it is known how that went, for another pause
    at most, all others still rest; a probe that its caller gives up on needs no mention.
    """

    def __init__(self) -> None:
        self.rest: Rest | None = None
        self._failures = 0
        self._first_failure_at = 0.0
        self._probe_at = 0.0
        self._pause_s = FIRST_PAUSE_S

    def admit(self, now: float) -> Rest | None:
        """Let a call through, or give the rest that it must wait for."""
        if self.rest is None:
            return None
        if now < self.rest.until:
            return self.rest
        self._probe_at = now
        self.rest = Rest(self.rest.since, now + self._pause_s, self.rest.code)
        return None

    def succeeded(self) -> None:
        """A call brought something, or failed for a reason of its own."""
        self.rest = None
        self._failures = 0
        self._pause_s = FIRST_PAUSE_S

    def failed(self, code: str, now: float, *, admitted_at: float, retry_after_s: float | None = None) -> None:
        """A call failed with one of UNWELL. What was admitted before the rest began is no news to it."""
        if self.rest is not None:
            if admitted_at < self._probe_at:
                return
            self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)
        else:
            self._first_failure_at = self._first_failure_at if self._failures else now
            self._failures += 1
            if self._failures < FAILURES_TO_REST:
                return
        self._probe_at = now
        pause_s = min(max(self._pause_s, retry_after_s or 0.0), LONGEST_PAUSE_S)
        self.rest = Rest(self._first_failure_at, now + pause_s, code)


def resting(rest: Rest, now: float) -> UpstreamError:
    """Say to whoever wanted to call that the service rests. It stays in their history, so it names times of day."""
    return UpstreamError(
        "upstream_resting",
        f"The model service has been failing since {_clock(rest.since, '%H:%M')} and is left alone until "
        f"{_clock(rest.until, '%H:%M:%S')} UTC. Try again then, or choose another model.",
        retryable=True,
        retry_after_s=max(0.0, rest.until - now),
        detail=f"last failure: {rest.code}",
    )


def in_words(rest: Rest, now: float) -> str:
    """Say to whoever looks at the catalogue that a service rests."""
    return f"Failing since {_clock(rest.since, '%H:%M')} UTC, next try in {max(1, round(rest.until - now))} s."


def _clock(at: float, form: str) -> str:
    return datetime.fromtimestamp(at, UTC).strftime(form)
