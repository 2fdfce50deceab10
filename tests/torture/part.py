"""One process of the site, as the suite treats it: started, hurt, and started again."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from functools import partial

from chatapp.up.child import Child
from chatapp.up.console import Console
from chatapp.up.service import Service
from tests.torture.hurts import How, Hurt, Hurts, Place

_LOOK_AGAIN_S = 0.05
# A process that cannot start ends at once, again and again.
_BEFORE_AGAIN_S = 1.0


class PartFailed(Exception):
    """A process ended although nobody hurt it, or did not become ready."""


class Part:
    """
    Keeps one service's process, and remembers whether it ended by itself.

    `lock` is for faults that take some time, so that no two of them hurt one part at once. What is done
    to the part is noted in `hurts`.
    """

    def __init__(self, service: Service, console: Console, hurts: Hurts, place: Place, number: int = 0) -> None:
        self._service = service
        self._console = console
        self._begin_hurt = partial(hurts.begin, place, number=number)
        self._lasting: list[Hurt] = []
        self._child: Child | None = None
        self._watch: asyncio.Task[int] | None = None
        self._expected = True
        self.lock = asyncio.Lock()
        self.own_endings: list[int] = []  # exit codes that no fault explains

    @property
    def name(self) -> str:
        return self._service.name

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    @property
    def runs(self) -> bool:
        return self._watch is not None and not self._watch.done()

    async def start(self) -> None:
        self._child = await Child.start(self._service, self._console)
        self._expected = False
        self._watch = asyncio.create_task(self._wait(self._child), name=f"watch {self.name}")

    async def until_ready(self, within_s: float = 60.0) -> None:
        """Wait until the service's probe is content. A part that ended by itself is started again."""
        give_up_at = time.monotonic() + within_s
        assert self._service.ready is not None
        while True:
            if not self.runs:
                await asyncio.sleep(_BEFORE_AGAIN_S)
                await self.start()
            if await self._service.ready(self.pid):
                self._heal()
                return
            if time.monotonic() > give_up_at:
                raise PartFailed(f"{self.name} was not ready within {within_s:g} s")
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def kill(self) -> None:
        """kill -9."""
        self._hurts(How.ENDED)
        self._expected = True
        if self._child is not None and self._watch is not None:
            self._child.kill()
            await self._watch

    async def end(self) -> None:
        """SIGTERM, as a rolling restart does; SIGKILL after the service's grace period."""
        self._hurts(How.ENDED)
        self._expected = True
        if self._child is not None and self._watch is not None:
            await self._child.end()
            await self._watch

    def freeze(self) -> None:
        """SIGSTOP: it does nothing, and its connections stay."""
        self._hurts(How.AWAY)
        os.killpg(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.killpg(self.pid, signal.SIGCONT)
        self._heal()

    def _hurts(self, how: How) -> None:
        self._lasting.append(self._begin_hurt(how))

    def _heal(self) -> None:
        for hurt in self._lasting:
            hurt.heal()
        self._lasting.clear()

    async def _wait(self, child: Child) -> int:
        code = await child.wait()
        if not self._expected:
            self.own_endings.append(code)
        return code
