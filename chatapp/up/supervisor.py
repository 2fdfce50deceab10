"""All services together: up in order, kept up, down in the opposite order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from chatapp.up.backoff import Backoff
from chatapp.up.console import Console
from chatapp.up.keeper import Keeper
from chatapp.up.service import Service, in_stages

# Long enough that a warm start prints nothing of it, short enough that nobody wonders.
PROGRESS_EVERY_S = 2.0


class Supervisor:
    """Runs services until `stop` is called or one of them cannot be started."""

    def __init__(
        self,
        services: Sequence[Service],
        console: Console,
        *,
        backoff: Backoff | None = None,
        keep_open: tuple[int, ...] = (),
        progress_every_s: float = PROGRESS_EVERY_S,
    ) -> None:
        self._console = console
        self._progress_every_s = progress_every_s
        self._stop = asyncio.Event()
        self._stages = [
            [Keeper(service, console, backoff=backoff or Backoff(), keep_open=keep_open) for service in stage]
            for stage in in_stages(services)
        ]
        self._keepers = {keeper.service.name: keeper for stage in self._stages for keeper in stage}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self, announce: Callable[[], None]) -> None:
        """
        Start all, call `announce` once when all are ready, and return when all have ended.

        Raises:
            StartFailed: a service could not be started. The others have been ended by then.
        """
        self._tasks = {name: asyncio.create_task(self._keep(keeper)) for name, keeper in self._keepers.items()}
        starting = asyncio.create_task(self._watch_start(announce))
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await self._first_failure_or(stopping)
        finally:
            starting.cancel()
            stopping.cancel()
            await self._end_all()

    def stop(self) -> None:
        """End all in order. A second call ends all at once."""
        if self._stop.is_set():
            self._console.say("killing what still runs")
            for keeper in self._keepers.values():
                keeper.kill()
        elif self._tasks:
            self._console.say("stopping; once more to stop at once")
        self._stop.set()

    async def _keep(self, keeper: Keeper) -> None:
        await keeper.run([self._keepers[name] for name in keeper.service.after if name in self._keepers])

    async def _first_failure_or(self, stopping: asyncio.Task[bool]) -> None:
        pending: set[asyncio.Task[None] | asyncio.Task[bool]] = {stopping, *self._tasks.values()}
        while not stopping.done():
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # Raises what a keeper raised.

    async def _watch_start(self, announce: Callable[[], None]) -> None:
        progress = asyncio.create_task(self._tell_progress())
        try:
            for keeper in self._keepers.values():
                await keeper.first_ready.wait()
        finally:
            progress.cancel()
        announce()

    async def _tell_progress(self) -> None:
        while True:
            await asyncio.sleep(self._progress_every_s)
            self._console.say(f"waiting for {self._awaited(time.monotonic())}")

    def _awaited(self, now: float) -> str:
        return ", ".join(
            f"{keeper.service.awaited} ({now - keeper.started_at:.0f} s)"
            for keeper in self._keepers.values()
            if keeper.started_at and not keeper.first_ready.is_set()
        )

    async def _end_all(self) -> None:
        for stage in reversed(self._stages):
            tasks = [self._tasks[keeper.service.name] for keeper in stage]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
