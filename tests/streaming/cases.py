"""Both logs, and what a test may do to them behind their backs."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest

from streaming.log.memory import MemoryLog
from streaming.log.ports import Log, Ref
from streaming.log.redis import RedisLog
from streaming.log.redis_format import append_keys


class MemoryCase:
    def __init__(self) -> None:
        self.log = MemoryLog(lambda: int(time.time() * 1000))

    async def expire(self, ref: Ref, ago_ms: int = 1) -> None:
        """Let a lease have ended so long ago."""
        self.log._metas[ref].lease = self.log._clock() - ago_ms

    async def vanish(self, ref: Ref) -> None:
        self.log._metas.pop(ref)
        self.log._logs.pop(ref.conversation)

    async def close(self) -> None:
        await self.log.close()


class RedisCase:
    def __init__(self, url: str) -> None:
        self.log = RedisLog.connect(url)

    async def expire(self, ref: Ref, ago_ms: int = 1) -> None:
        seconds, micros = await self.log._client.time()
        ended = seconds * 1000 + micros // 1000 - ago_ms
        await self.log._client.hset(append_keys(ref)[1], "lease", ended)

    async def vanish(self, ref: Ref) -> None:
        await self.log._client.delete(*append_keys(ref))

    async def close(self) -> None:
        await self.log.close()


@pytest.fixture(params=["memory", "redis"])
async def case(request: pytest.FixtureRequest) -> AsyncIterator[MemoryCase | RedisCase]:
    made = MemoryCase() if request.param == "memory" else RedisCase(request.getfixturevalue("redis_url"))
    yield made
    await made.close()


@pytest.fixture
def log(case: MemoryCase | RedisCase) -> Log:
    return case.log
