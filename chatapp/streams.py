"""How many live connections each owner has, over all web processes."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from weakref import finalize

from django.conf import settings
from redis.asyncio import Redis
from redis.exceptions import RedisError

from chatapp.errors import Problem
from chatapp.owners import Owner
from chatapp.seldom import Seldom, why

_seldom = Seldom(logging.getLogger(__name__))

_KEEP = (Path(__file__).parent / "streams.lua").read_text(encoding="utf-8")
# What a process said of a connection holds for three of its beats, so those of a dead process are soon forgotten.
BEAT_S = 10.0
HOLDS_MS = 30_000
TIMEOUT_S = 2.0
RETRY_AFTER_S = 10


class Stream:
    """A place among an owner's live connections; given back by `close`, or when nobody holds it any more."""

    __slots__ = ("__weakref__", "_leave", "_wake", "name")

    def __init__(self, leave: Callable[[str], None], wake: Callable[[], None]) -> None:
        self.name = uuid.uuid4().hex
        self._leave = finalize(self, leave, self.name)
        self._leave.atexit = False
        self._wake = wake

    def close(self) -> None:
        if self._leave.alive:
            self._leave()
            self._wake()


@dataclass(slots=True)
class _Names:
    """The connections of one owner: those that are open here, those that Redis must still be told to have closed."""

    open: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)
    others: int = 0  # How many other processes had, when Redis said so last.

    def leave(self, name: str) -> None:
        self.open.discard(name)
        self.closed.add(name)


class Streams:
    """
    This process's live connections. Redis knows those of all processes, for each owner.

    `run` keeps them fresh there until cancelled.
    """

    def __init__(self, redis: Redis) -> None:
        self._keep = redis.register_script(_KEEP)
        self._names: dict[str, _Names] = {}
        self._wake = asyncio.Event()

    @property
    def count(self) -> int:
        return sum(len(names.open) for names in self._names.values())

    async def open(self, owner: Owner) -> Stream:
        """
        Take a place.

        Raises:
            Problem: `too_many_streams`.
        """
        names = self._names.setdefault(owner.key, _Names())
        stream = Stream(names.leave, self._wake.set)
        names.open.add(stream.name)
        most = settings.MAX_STREAMS
        if most and not await self._admit(owner.key, names, stream.name, most):
            stream.close()
            detail = f"At most {most} live connections are allowed. Close some tabs."
            raise Problem("too_many_streams", detail, retry_after=RETRY_AFTER_S)
        return stream

    async def run(self) -> None:
        """Tell Redis what closed soon, and what is open from time to time."""
        while True:
            is_beat = not await self._woken()
            for key, names in list(self._names.items()):
                if is_beat or names.closed:
                    await self._tell(key, names, names.open if is_beat else ())
                if not names.open and not names.closed:
                    del self._names[key]

    async def forget(self) -> None:
        """Take back what this process said: it goes, and its readers will connect to another."""
        for key, names in list(self._names.items()):
            names.closed |= names.open
            names.open.clear()
            await self._tell(key, names, ())

    async def _woken(self) -> bool:
        """Wait until a connection closes, or for a beat."""
        try:
            async with asyncio.timeout(BEAT_S):
                await self._wake.wait()
        except TimeoutError:
            return False
        self._wake.clear()
        return True

    async def _admit(self, key: str, names: _Names, name: str, most: int) -> bool:
        """Say whether there may be one more. While Redis says nothing, others have what they had when it last spoke."""
        found = await self._ask(key, names, [name], most)
        if found is None:
            return len(names.open) + names.others <= most
        if found >= 0:
            names.others = max(0, found - len(names.open))
        return found >= 0

    async def _tell(self, key: str, names: _Names, opened: Collection[str]) -> None:
        if settings.MAX_STREAMS:
            await self._ask(key, names, opened, 0)
        else:
            names.closed.clear()  # Nobody counts them.

    async def _ask(self, key: str, names: _Names, opened: Collection[str], most: int) -> int | None:
        """Give Redis's answer, or None where it has none in time. What closed is told with whatever comes first."""
        closed = list(names.closed)
        arguments: list[str | int] = [HOLDS_MS, most, len(closed), *closed, *opened]
        try:
            async with asyncio.timeout(TIMEOUT_S):
                found = int(await self._keep([f"sidestream:connections:{key}"], arguments))
        except (RedisError, OSError, TimeoutError) as exc:
            _seldom.warning("live connections are counted in this process only: %s", why(exc))
            return None
        names.closed.difference_update(closed)
        return found
