"""Tells the workers that a generation waits, without making anybody wait for the broker."""

from __future__ import annotations

import logging
import threading
from queue import Full, Queue
from typing import Any

from chatapp.celery import app

logger = logging.getLogger(__name__)

TASK = "generate"
QUEUE = "generations"
# Messages that wait while the broker is away. What does not fit is sent later by a worker's reaper.
MAX_WAITING = 1_000
# Kombu's own retries would hold one message for six seconds, and all that wait behind it.
LIMITS = {"socket_timeout": 3, "socket_connect_timeout": 3, "max_retries": 0}


class Dispatcher:
    """
    One thread that sends, and a bounded queue before it.

    A broker that is down would hold a request for seconds; here it holds the thread only. A message
    that cannot be sent is dropped: the generation's row is in the database, and the reaper sends
    again what nobody claimed.
    """

    def __init__(self, max_waiting: int = MAX_WAITING) -> None:
        self._waiting: Queue[str] = Queue(max_waiting)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def send(self, gen: str) -> None:
        """Take a generation's UUID to the workers soon. Never blocks, never raises."""
        with self._lock:
            if self._thread is None:
                # A daemon, so that a broker that is away cannot keep a process from ending.
                self._thread = threading.Thread(target=self._serve, name="dispatch", daemon=True)
                self._thread.start()
        try:
            self._waiting.put_nowait(gen)
        except Full:
            logger.warning("generation %s: not sent, too many wait; the reaper will send it", gen)

    @property
    def waiting(self) -> int:
        return self._waiting.qsize()

    def join(self) -> None:
        """Wait until everything that was given has been sent or dropped."""
        self._waiting.join()

    def _serve(self) -> None:
        connection: Any = None
        while True:
            gen = self._waiting.get()
            try:
                connection = connection or app.connection_for_write(transport_options=LIMITS)
                app.send_task(TASK, [gen], queue=QUEUE, connection=connection, retry=False, ignore_result=True)
            except Exception as exc:  # noqa: BLE001 - whatever it is, it must not stop the thread.
                logger.warning("generation %s: not sent (%s); the reaper will send it", gen, exc)
                _drop(connection)
                connection = None
            finally:
                self._waiting.task_done()


def _drop(connection: Any) -> None:
    """Close a connection that failed; a new one is made for the next message."""
    try:
        connection.release()
    except Exception:
        logger.debug("a broken broker connection could not be closed", exc_info=True)


dispatcher = Dispatcher()
