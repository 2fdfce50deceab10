"""How many live connections each owner has, over all web processes."""

from __future__ import annotations

import asyncio
import logging
import uuid
from pathlib import Path
from weakref import WeakSet

from django.conf import settings
from redis.asyncio import Redis
from redis.exceptions import RedisError

from chatapp.errors import Problem
from chatapp.owners import Owner

logger = logging.getLogger(__name__)

_COUNT = (Path(__file__).parent / "streams.lua").read_text(encoding="utf-8")
# What a process said of its connections holds for three of its beats, so those of a dead one are soon forgotten.
BEAT_S = 10.0
HOLDS_MS = 30_000
TIMEOUT_S = 2.0
RETRY_AFTER_S = 10


class Stream:
    """A place among an owner's live connections; given back by `close`, or when nobody holds it any more."""

    __slots__ = ("__weakref__", "_key", "_streams")

    def __init__(self, streams: Streams, key: str) -> None:
        self._streams = streams
        self._key = key

    def close(self) -> None:
        self._streams.release(self, self._key)


class Streams:
    """
    This process's live connections. Redis knows each process's number of them for each owner.

    `run` keeps those numbers fresh until cancelled.
    """

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._count = redis.register_script(_COUNT)
        self._process = uuid.uuid4().hex
        self._open: dict[str, WeakSet[Stream]] = {}
        self._changed: set[str] = set()
        self._wake = asyncio.Event()

    @property
    def count(self) -> int:
        return sum(map(len, self._open.values()))

    async def open(self, owner: Owner) -> Stream:
        """
        Take a place.

        Raises:
            Problem: `too_many_streams`.
        """
        stream = Stream(self, owner.key)
        # Counted before Redis is asked, so that of those who come at once each counts the others.
        self._open.setdefault(owner.key, WeakSet()).add(stream)
        most = settings.MAX_STREAMS
        if most and not await self._tell(owner.key, most):
            self.release(stream, owner.key)
            detail = f"At most {most} live connections are allowed. Close some tabs."
            raise Problem("too_many_streams", detail, retry_after=RETRY_AFTER_S)
        return stream

    def release(self, stream: Stream, key: str) -> None:
        mine = self._open.get(key)
        if mine is not None and stream in mine:
            mine.discard(stream)
            self._changed.add(key)
            self._wake.set()

    async def run(self) -> None:
        """Tell Redis what closed soon, and what is open from time to time."""
        while True:
            changed = await self._until_due()
            for key in changed:
                await self._tell(key, 0)
                if not self._open.get(key):
                    self._open.pop(key, None)

    async def forget(self) -> None:
        """Take back what this process said: it goes, and its readers will connect to another."""
        for key in list(self._open):
            self._open.pop(key).clear()
            await self._tell(key, 0)

    async def _until_due(self) -> list[str]:
        try:
            async with asyncio.timeout(BEAT_S):
                await self._wake.wait()
        except TimeoutError:
            self._changed.update(self._open)
        self._wake.clear()
        changed = list(self._changed)
        self._changed.clear()
        return changed

    async def _tell(self, key: str, most: int) -> bool:
        """Give whether there may be one more. Without Redis only this process's own are known, and they may."""
        count = len(self._open.get(key, ()))
        try:
            async with asyncio.timeout(TIMEOUT_S):
                arguments: list[str | int] = [self._process, count, HOLDS_MS, most]
                return bool(await self._count([f"sidestream:streams:{key}"], arguments))
        except (RedisError, OSError, TimeoutError) as exc:
            logger.warning("live connections are counted in this process only: %s", exc)
            return not most or count <= most
