"""Connections to Redis or Valkey, the scripts beside this file, and one name for every failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import redis.asyncio as aioredis
from redis.connection import HiredisRespSerializer
from redis.exceptions import NoScriptError, RedisError

from streaming.errors import LogUnavailable

# A command that takes longer than this has lost its connection. Blocking reads have a bound of their own.
COMMAND_S = 5.0
# A connection for each command under way; more commands than this wait their turn.
MAX_CONNECTIONS = 16
_SERIALIZER = HiredisRespSerializer()


def pooled(url: str) -> aioredis.Redis:
    """Give a client of many connections for a redis:// or unix:// URL."""
    # redis-py's plain pool refuses a command when all its connections are busy; this one lets it wait.
    pool = aioredis.BlockingConnectionPool.from_url(
        url,
        protocol=2,
        socket_timeout=None,
        max_connections=MAX_CONNECTIONS,
        timeout=COMMAND_S,
        health_check_interval=25,
    )
    _packing(pool)
    return aioredis.Redis.from_pool(pool)


def single(url: str) -> aioredis.Redis:
    """Give a client of one connection, for commands that block."""
    client = aioredis.Redis.from_url(url, protocol=2, socket_timeout=None, single_connection_client=True)
    _packing(client.connection_pool)
    return client


async def drop(client: aioredis.Redis) -> None:
    """Let go of a client's one connection."""
    if client.connection is not None:
        await client.connection.disconnect(nowait=True)


@asynccontextmanager
async def within(seconds: float = COMMAND_S) -> AsyncIterator[None]:
    """
    Bound what happens inside, and say every failure as LogUnavailable.

    redis-py's own `socket_timeout` writes through `asyncio.wait_for`, which on Python 3.11 can swallow
    a cancellation; so clients have none, and this bounds them instead.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except (RedisError, OSError, TimeoutError) as exc:
        raise LogUnavailable(f"Redis cannot be reached or refused: {exc}") from exc


class Script:
    """A script by its digest, loaded again when the server has forgotten it."""

    def __init__(self, name: str) -> None:
        self.source = (Path(__file__).parent / f"{name}.lua").read_text(encoding="utf-8")
        self._sha = ""

    async def run(self, client: aioredis.Redis, keys: Sequence[str], args: Sequence[Any]) -> Any:
        sha = self._sha or await self._load(client)
        try:
            return await cast("Any", client.evalsha(sha, len(keys), *keys, *args))
        except NoScriptError:
            sha = await self._load(client)
            return await cast("Any", client.evalsha(sha, len(keys), *keys, *args))

    async def _load(self, client: aioredis.Redis) -> str:
        self._sha = await cast("Any", client.script_load(self.source))
        return self._sha


class _Packing:
    """Words commands in C, as redis-py's own synchronous connections do; its asyncio ones take 20 times as long."""

    def pack_command(self, *args: Any) -> list[bytes]:
        return _SERIALIZER.pack(*args)  # type: ignore[no-any-return]


def _packing(pool: aioredis.ConnectionPool) -> None:
    kind = pool.connection_class
    pool.connection_class = type(f"Packing{kind.__name__}", (_Packing, kind), {})
