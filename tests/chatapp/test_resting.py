"""What workers say of resting services reaches those who list models; without Redis nothing does, nor fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from chatapp import presence
from chatapp.resting import RestBoard, resting
from streaming.upstream.breaker import Rest

REST = Rest(1000.0, 1030.5, "overloaded")
HERE, THERE = "https://here.example/v1", "https://there.example/v1"


@pytest.fixture
async def client(empty_redis: str) -> AsyncIterator[Redis]:
    async with presence.connect(empty_redis) as client:
        yield client


async def test_a_rest_that_was_posted_is_read(client: Redis) -> None:
    board = RestBoard(client)
    board.post(HERE, REST)
    await board.posted()
    assert await resting(client) == {HERE: REST}


async def test_a_service_that_is_well_again_is_taken_off(client: Redis) -> None:
    board = RestBoard(client)
    board.post(HERE, REST)
    board.post(THERE, REST)
    await board.posted()
    board.post(HERE, None)
    await board.posted()
    assert await resting(client) == {THERE: REST}


async def test_of_notices_in_a_hurry_the_newest_stands(client: Redis) -> None:
    board = RestBoard(client)
    for notice in (REST, None, REST, None):
        board.post(HERE, notice)
    await board.posted()
    assert await resting(client) == {}


async def test_without_redis_no_service_is_known_to_rest(tmp_path: Path) -> None:
    async with presence.connect(f"unix://{tmp_path}/nothing.sock") as nowhere:
        board = RestBoard(nowhere)
        board.post(HERE, REST)
        await board.posted()
        assert await resting(nowhere) == {}
