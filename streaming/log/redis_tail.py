"""One blocking read over many logs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import redis.asyncio as aioredis

from streaming.log.ports import Logged
from streaming.log.redis_client import drop, single, within
from streaming.log.redis_format import WAKE, conversation_of, log_key, logged_of


class RedisTail:
    """
    Blocks on one stream that every write to any log renews, then reads all logs at once.

    Blocking on the logs themselves costs more with each of them, and before Redis 7.2 is answered with the first
    alone that got something. The blocking connection is this tail's own, without a socket timeout: redis-py's
    default of 5 s would break a longer block. A black hole is found because a read that outlasts its own block by
    `MARGIN_S` gives the connection up.
    """

    MARGIN_S = 3.0

    def __init__(self, url: str, client: aioredis.Redis) -> None:
        self._reader = single(url)
        self._reader.set_response_callback("XREAD", lambda response, **_: response)
        self._client = client
        self._woken: bytes | None = None  # The newest waking that was seen.

    async def wait(self, at_most_ms: int) -> None:
        async with self._bounded(at_most_ms / 1000 + self.MARGIN_S):
            if self._woken is None:
                newest = await cast("Any", self._reader.xrevrange(WAKE, count=1))
                self._woken = newest[0][0] if newest else b"0-0"
                return
            answer = await self._xread("BLOCK", at_most_ms, "STREAMS", WAKE, self._woken)
            # After a quiet time it is looked up anew: the clock that ids are made of may have stepped back.
            self._woken = answer[0][1][-1][0] if answer else None

    async def read(self, cursors: Mapping[str, str]) -> dict[str, list[Logged]]:
        keys = [log_key(conversation) for conversation in cursors]
        async with self._bounded(self.MARGIN_S):
            answer = await self._xread("STREAMS", *keys, *cursors.values()) if keys else ()
        return {conversation_of(key): [logged_of(row_id, fields) for row_id, fields in rows] for key, rows in answer}

    async def interrupt(self) -> None:
        async with within():
            await self._client.xadd(WAKE, {"s": 0}, maxlen=1, approximate=False)

    async def close(self) -> None:
        await self._reader.aclose()

    @asynccontextmanager
    async def _bounded(self, seconds: float) -> AsyncIterator[None]:
        async with within(seconds):
            try:
                yield
            except BaseException:
                # The connection may be in the middle of an answer: never use it again.
                self._woken = None
                await asyncio.shield(drop(self._reader))
                raise

    async def _xread(self, *options: Any) -> Any:
        return await self._reader.execute_command("XREAD", *options) or ()  # type: ignore[no-untyped-call]
