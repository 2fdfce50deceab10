"""Living workers, as Redis knows them: each writes its name with the time, every two seconds."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from typing import Any, cast

from redis.asyncio import Redis
from redis.exceptions import RedisError

from chatapp.seldom import Seldom, why

logger = logging.getLogger(__name__)
_seldom = Seldom(logger)

KEY = "sidestream:workers"  # sorted set: "host:pid" → epoch ms, by Redis's clock
BEAT_S = 2.0
# Five missed beats. A worker that is late by more has stopped, or has lost Redis.
FRESH_MS = 10_000
FORGET_MS = 60_000
TIMEOUT_S = 2.0


def connect(url: str) -> Redis:
    # No socket timeout: redis-py keeps it by wait_for, which may swallow a cancellation on Python 3.11.
    return Redis.from_url(url, protocol=2, socket_timeout=None, socket_connect_timeout=TIMEOUT_S)


def own_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


async def announce(client: Redis, name: str) -> None:
    """Say that this worker lives until cancelled; then say that it goes."""
    try:
        while True:
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    await _beat(client, name)
            except (RedisError, OSError, TimeoutError) as exc:
                _seldom.warning("this worker's sign of life did not reach Redis: %s", why(exc))
            await asyncio.sleep(BEAT_S)
    finally:
        await _leave(client, name)


async def living(client: Redis) -> int:
    """
    Count the workers that gave a sign of life just now.

    Raises:
        RedisError: Redis cannot be reached.
    """
    return await client.zcount(KEY, await _now(client) - FRESH_MS, "+inf")


async def _beat(client: Redis, name: str) -> None:
    now = await _now(client)
    pipe = client.pipeline(transaction=False)
    pipe.zadd(KEY, {name: now})
    pipe.zremrangebyscore(KEY, "-inf", now - FORGET_MS)
    await pipe.execute()


async def _leave(client: Redis, name: str) -> None:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await client.zrem(KEY, name)
    except (RedisError, OSError, TimeoutError):
        logger.info("this worker leaves without a word: Redis is away")


async def _now(client: Redis) -> int:
    seconds, micros = await cast("Any", client.time())
    return int(seconds) * 1000 + int(micros) // 1000
