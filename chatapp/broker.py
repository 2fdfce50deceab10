"""How a worker comes back to its broker."""

from __future__ import annotations

from functools import partial
from time import sleep
from typing import Any

from celery.worker import consumer

# Celery's own waits grow from 2 s by 2 s up to 30 s, and nobody can set them. The first prompt after Redis was away
# for 6 s then waited as long again, until the reaper found it. A look at a socket each 1.5 s costs nothing.
FIRST_S, STEP_S, MOST_S = 0.2, 0.4, 1.5


class Consumer(consumer.Consumer):
    """Celery's consumer, but for the waits between its attempts to connect."""

    channel_errors: tuple[type[Exception], ...]  # What a broker answers that refuses.

    def ensure_connected(self, conn: Any) -> Any:
        waits = {"interval_start": FIRST_S, "interval_step": STEP_S, "interval_max": MOST_S}
        conn.ensure_connection = partial(conn.ensure_connection, **waits)
        return super().ensure_connected(conn)

    def on_connection_error_before_connected(self, exc: Exception) -> None:
        super().on_connection_error_before_connected(exc)
        self._wait_if_refused(exc)

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        super().on_connection_error_after_connected(exc)
        self._wait_if_refused(exc)

    def _wait_if_refused(self, exc: Exception) -> None:
        """Connecting works then, so nothing else waits; Celery calls more than five attempts in a second critical."""
        if isinstance(exc, self.channel_errors):
            sleep(MOST_S)
