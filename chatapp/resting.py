"""Which services rest: written by the workers that call them, read by the web processes that list them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any, cast

from redis.asyncio import Redis
from redis.exceptions import RedisError

from streaming.upstream.breaker import Rest

logger = logging.getLogger(__name__)

KEY = "sidestream:resting"  # hash: address → [since, until, code]
# Longer than any rest. What a worker left behind when it died goes with it.
KEEP_S = 3600
TIMEOUT_S = 2.0


class RestBoard:
    """
    One worker's notices. Workers find out for themselves, so of two that differ the newer notice stands.

    `post` does not wait: a notice that does not reach Redis costs the catalogue a mark, no more.
    """

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._newest: dict[str, Rest | None] = {}
        self._writing: asyncio.Task[None] | None = None

    def post(self, address: str, rest: Rest | None) -> None:
        """Say on this loop that a service rests, or with None that it is well."""
        self._newest[address] = rest
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name="post rests")

    async def posted(self) -> None:
        """Wait until all that was posted is written, or is given up."""
        if self._writing is not None:
            await self._writing

    async def _write(self) -> None:
        while self._newest:
            notices, self._newest = self._newest, {}
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    await self._put(notices)
            except (RedisError, OSError, TimeoutError) as exc:
                logger.warning("that services rest, or are well again, did not reach Redis: %s", exc)

    async def _put(self, notices: Mapping[str, Rest | None]) -> None:
        pipe = self._client.pipeline(transaction=False)
        for address, rest in notices.items():
            if rest is None:
                pipe.hdel(KEY, address)
            else:
                pipe.hset(KEY, address, json.dumps([rest.since, rest.until, rest.code]))
        pipe.expire(KEY, KEEP_S)
        await pipe.execute()


async def resting(client: Redis) -> dict[str, Rest]:
    """Read which services rest, by address. Without Redis none is known to."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            notices = await cast("Any", client.hgetall(KEY))
    except (RedisError, OSError, TimeoutError) as exc:
        logger.warning("which services rest cannot be read: %s", exc)
        return {}
    return {address.decode(): Rest(*json.loads(notice)) for address, notice in notices.items()}
