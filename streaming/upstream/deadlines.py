"""One timer for each call, whatever number of chunks it brings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds; each ends the call with its own error code."""

    connect_s: float = 10  # Name, TCP and TLS together.
    first_byte_s: float = 120  # From the connection to the first byte of the body: prompts take time to read.
    idle_s: float = 60  # Between two reads that held anything at all.
    payload_idle_s: float = 120  # Between two reads that held more than comments.
    total_s: float = 1800
    after_finish_s: float = 5  # From the finish reason to the terminator; then the answer is taken as it is.

    @property
    def shortest_s(self) -> float:
        return min(self.idle_s, self.payload_idle_s, self.after_finish_s)


# A timer that fires so much later than it was set for did not run in time.
LATE_S = 0.1
# Expires in place of a fault code where the upstream has said how the answer ended, and then says no more.
SETTLED = "settled"


class Watchdog:
    """
    Calls `expire` with a fault code, or SETTLED, when a deadline has passed.

    Progress only writes time stamps. The timer looks at them when it fires, and is set again for the
    earliest time at which something could be late, so a chunk costs no timer. Time that the consumer
    takes between two reads counts for the total only: it is not the upstream's silence.
    """

    def __init__(self, deadlines: Deadlines, expire: Callable[[str], None]) -> None:
        self._deadlines = deadlines
        self._expire = expire
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._started = self._heard = self._payload = 0.0
        self._connected: float | None = None
        self._first_byte = False
        self._ending = False
        self._reading = True
        self._was_late = False

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._set()

    @property
    def has_connected(self) -> bool:
        return self._connected is not None

    def connected(self) -> None:
        """The connection stands, TLS included; the request goes out now."""
        if self._loop:
            self._connected = self._loop.time()
            self._set()

    def reading(self) -> None:
        """A read begins."""
        if self._loop:
            now = self._loop.time()
            self._payload += now - self._heard
            self._heard = now
            self._reading = True

    def heard(self, *, payload: bool, ending: bool = False) -> None:
        """A read brought bytes: `payload`, more than comments; `ending`, how the answer ended is now known."""
        if not self._loop:
            return
        self._heard = self._loop.time()
        self._reading = False
        if payload or not self._first_byte:
            self._payload = self._heard
        if not self._first_byte or ending != self._ending:
            self._first_byte, self._ending = True, ending
            self._set()

    def stop(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._loop = self._timer = None

    def _set(self) -> None:
        if self._loop:
            if self._timer:
                self._timer.cancel()
            self._was_late = False
            self._timer = self._loop.call_at(self._due()[0], self._look)

    def _look(self) -> None:
        if self._loop:
            due, code = self._due()
            now = self._loop.time()
            if due > now:
                self._set()
            elif now - due > LATE_S and not self._was_late:
                # This process slept, or its loop was held up: what arrived meanwhile is read first.
                self._was_late = True
                self._timer = self._loop.call_later(LATE_S, self._look)
            elif self._reading or code == "total_timeout":
                self.stop()
                self._expire(code)
            else:
                # The consumer has yet to ask for more, and the clock of silence starts when it does.
                self._timer = self._loop.call_at(now + self._deadlines.shortest_s, self._look)

    def _due(self) -> tuple[float, str]:
        limits = self._deadlines
        total = (self._started + limits.total_s, "total_timeout")
        if self._connected is None:
            return min(total, (self._started + limits.connect_s, "connect_timeout"))
        if not self._first_byte:
            return min(total, (self._connected + limits.first_byte_s, "first_byte_timeout"))
        if self._ending:
            return min(total, (self._heard + limits.after_finish_s, SETTLED))
        idle = (self._heard + limits.idle_s, "idle_timeout")
        return min(total, idle, (self._payload + limits.payload_idle_s, "no_payload_timeout"))
