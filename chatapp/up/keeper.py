"""Keeps one service running until it is told to stop."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Callable, Sequence

from chatapp.up.backoff import Backoff
from chatapp.up.child import Child
from chatapp.up.console import Console
from chatapp.up.refusal import StartFailed
from chatapp.up.service import Service

# Whoever cannot start once is misconfigured, and its log says how; trying on would only bury that.
FIRST_TRIES = 3
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
# The first looks come fast, since a warm start takes a tenth of a second; later ones cost less.
_FIRST_LOOK_S, _LAST_LOOK_S = 0.03, 0.25


class Keeper:
    """
    Runs one service: waits for those before it, starts it, watches it, starts it again.

    `first_ready` is set once and stays set. `started_at` is by the monotonic clock.
    """

    def __init__(
        self,
        service: Service,
        console: Console,
        *,
        backoff: Backoff,
        keep_open: tuple[int, ...] = (),
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.service = service
        self.first_ready = asyncio.Event()
        self.started_at: float | None = None
        self._console = console
        self._backoff = backoff
        self._keep_open = keep_open
        self._chance = chance
        self._child: Child | None = None
        self._was_ready = False  # In the life that goes on or went last.
        self._may_mend = True

    async def run(self, before: Sequence[Keeper]) -> None:
        """
        Run until cancelled; the process has ended when this returns. An errand returns by itself.

        Raises:
            StartFailed: it could not be made ready even once.
        """
        for keeper in before:
            await keeper.first_ready.wait()
        self.started_at = time.monotonic()
        failures = 0
        while True:
            began = time.monotonic()
            ending = await self._one_life()
            if self.service.is_errand and ending == 0:
                self._mark_ready()
                return
            if await self._mended(ending):
                continue
            failures = self._backoff.failures(failures, time.monotonic() - began)
            self._give_up_if_hopeless(failures, ending)
            delay_s = self._backoff.delay_s(failures, self._chance())
            self._console.say(f"{self.service.name} {_in_words(ending)}; starting it again in {delay_s:.1f} s")
            await asyncio.sleep(delay_s)

    def kill(self) -> None:
        """End the process now, without grace."""
        if self._child:
            self._child.kill()

    async def _one_life(self) -> int:
        try:
            child = await Child.start(self.service, self._console, self._keep_open)
        except OSError as exc:
            raise StartFailed(f"{self.service.name} cannot be started: {exc}.") from exc
        self._child = child
        self._was_ready = False
        looking = asyncio.create_task(self._look_until_ready(child))
        try:
            return await child.wait()
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
            await child.end()
            self._child = None

    async def _look_until_ready(self, child: Child) -> None:
        if self.service.ready is None:
            return
        pause_s = _FIRST_LOOK_S
        while not await self.service.ready(child.pid):
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, _LAST_LOOK_S)
        self._mark_ready()

    async def _mended(self, ending: int) -> bool:
        """
        Let the service remove what kept its process from being ready, once until it is.

        A process that others killed tells nothing of a cause.
        """
        by_itself = ending > 0 or -ending in _CRASHES
        if self.service.mend is None or not self._may_mend or self._was_ready or not by_itself:
            return False
        self._may_mend = False
        if told := await self.service.mend():
            self._console.say(told)
        return bool(told)

    def _mark_ready(self) -> None:
        self._was_ready = self._may_mend = True
        waited_s = time.monotonic() - (self.started_at or 0)
        how = "again" if self.first_ready.is_set() else f"after {waited_s:.1f} s"
        process = f" (process {self._child.pid})" if self._child else ""
        self._console.say(f"{self.service.name} is ready {how}{process}")
        self.first_ready.set()

    def _give_up_if_hopeless(self, failures: int, ending: int) -> None:
        if self.first_ready.is_set() or not (self.service.is_errand or failures >= FIRST_TRIES):
            return
        times = "" if self.service.is_errand else f" {failures} times"
        raise StartFailed(
            f"{self.service.name} {_in_words(ending)}{times} before it was ready; its lines above say why."
        )


def _in_words(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
