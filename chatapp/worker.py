"""One asyncio loop in one thread of a worker process; Celery's threads wait on it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from functools import cache
from typing import Any

from chatapp import presence
from chatapp.ending import end
from chatapp.wiring import Worker

logger = logging.getLogger(__name__)

STOP_S = 10.0


class Host:
    """The loop's thread, with the runtime in it. Made on first use, one a process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stopping = threading.Event()
        self._worker: Worker | None = None
        self._serving: asyncio.Task[None] | None = None
        self._announcing: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="runtime", daemon=True)
        self._thread.start()
        self._ready.wait()

    def drive(self, gen: str) -> None:
        """Wait until this generation, or one that comes before it, is driven to its end; or none is this process's."""
        try:
            self._submit(self._alive().slots.fill(gen)).result()
        except CancelledError:
            logger.warning("generation %s: this worker stopped before its end", gen)

    def drain(self, grace_s: float) -> None:
        """Begin to come to an end; does not wait. Whoever takes no more is no worker for readiness."""
        if self._announcing is not None:
            self._loop.call_soon_threadsafe(self._announcing.cancel)
        self._submit(self._alive().drain(grace_s)).add_done_callback(_log_failure)

    def stop(self) -> None:
        """End the loop, whatever it still does."""
        self._stopping.set()
        if self._serving is not None:
            self._loop.call_soon_threadsafe(self._serving.cancel)
        self._thread.join(STOP_S)
        if self._thread.is_alive():
            logger.error("this worker's loop did not end within %s s; it ends with the process", STOP_S)

    def _alive(self) -> Worker:
        if self._worker is None:
            raise RuntimeError("this worker's loop did not start")
        return self._worker

    def _submit(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except asyncio.CancelledError:
            pass
        except BaseException:
            logger.critical("this worker's loop ended by a fault", exc_info=True)
        finally:
            self._ready.set()
            if not self._stopping.is_set():
                # Without its loop the process can do nothing more; whoever supervises it starts another.
                os.kill(os.getpid(), signal.SIGTERM)

    async def _serve(self) -> None:
        self._worker = Worker.build()
        self._serving = asyncio.current_task()
        self._announcing = asyncio.create_task(presence.announce(self._worker.redis, presence.own_name()))
        parts = [asyncio.create_task(self._worker.runtime.run()), self._announcing]
        self._ready.set()
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_EXCEPTION)
            for part in parts:
                part.result()  # Raises what ended it.
        finally:
            await end(*parts)
            await self._worker.close()


@cache
def host() -> Host:
    """Give this process's host; the first call starts it."""
    return Host()


def _log_failure(future: Future[None]) -> None:
    if not future.cancelled() and future.exception() is not None:
        logger.error("draining failed", exc_info=future.exception())
