"""Database work that takes its time beside streams: it holds up its own request, and no stream."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from pytest_django import Settings

from chatapp.database import THREADS
from chatapp.wiring import web
from tests.chatapp.listening import TRANSPORTS, Frames
from tests.chatapp.people import Person
from tests.chatapp.queries import around_queries
from tests.chatapp.visiting import status_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]

NOTICE = '{"v":1,"type":"turn","turn":{}}'
# Frames that must come while a query hangs; a pause of any length would let the test time out.
FRAMES = 20


class HangingQueries:
    """So many queries wait until they are let go; those that come after them run."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._left = threading.Semaphore(count)
        self._hanging = threading.Semaphore(0)
        self._go_on = threading.Event()

    def __call__(self, execute: Any, *query: Any) -> Any:
        if self._left.acquire(blocking=False):
            self._hanging.release()
            self._go_on.wait(60)
        return execute(*query)

    async def until_they_hang(self) -> None:
        for _ in range(self._count):
            assert await asyncio.to_thread(self._hanging.acquire, timeout=10), "no query came"

    def let_go(self) -> None:
        self._go_on.set()


@asynccontextmanager
async def hanging_queries(count: int) -> AsyncIterator[HangingQueries]:
    queries = HangingQueries(count)
    async with around_queries(queries):
        try:
            yield queries
        finally:
            queries.let_go()


@asynccontextmanager
async def streams_of(person: Person, path: str) -> AsyncIterator[list[Frames]]:
    """Follow a conversation over every transport."""
    cursor = (await person.sync(path))["cursor"]
    async with AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(listen(person, path, cursor)) for listen in TRANSPORTS.values()]
        # A socket is accepted before its right is looked up; a stream that has told something is open.
        await say_and_hear(path, streams)
        yield streams


async def say_and_hear(path: str, streams: list[Frames]) -> None:
    """Let something happen in the conversation, and wait until every stream has told it."""
    await web().log.announce(path.rpartition("/")[2], NOTICE)
    for frames in streams:
        assert (await anext(frames))["type"] == "events"


@pytest.mark.parametrize("where", ["/", "/c/{id}", "/api/conversations/{id}/sync", "/admin/"])
async def test_a_query_that_hangs_in_one_request_pauses_no_stream(alice: Person, bob: Person, where: str) -> None:
    path, bobs = await alice.begin(), await bob.begin()
    async with streams_of(alice, path) as streams:
        async with hanging_queries(1) as queries:
            getting = asyncio.create_task(status_of(bob, where.format(id=bobs.rpartition("/")[2])))
            await queries.until_they_hang()
            for _ in range(FRAMES):
                await say_and_hear(path, streams)
            assert not getting.done()
        assert await getting in (200, 302)


async def test_a_turn_that_hangs_pauses_no_stream_of_its_own_conversation(alice: Person) -> None:
    path = await alice.begin()
    async with streams_of(alice, path) as streams:
        async with hanging_queries(1) as queries:
            asking = asyncio.create_task(alice.ask(path))
            await queries.until_they_hang()
            for _ in range(FRAMES):
                await say_and_hear(path, streams)
            assert not asking.done()
        assert len((await asking)["generations"]) == 1


async def test_hanging_queries_that_take_every_thread_pause_no_stream(
    alice: Person, bob: Person, settings: Settings
) -> None:
    path, bobs = await alice.begin(), await bob.begin()
    async with streams_of(alice, path) as streams:
        settings.STREAM_RECHECK_S = 0.0
        async with hanging_queries(THREADS) as queries:
            getting = [asyncio.create_task(status_of(bob, f"{bobs}/sync")) for _ in range(12)]
            await queries.until_they_hang()
            for _ in range(FRAMES):
                await say_and_hear(path, streams)
            assert not any(one.done() for one in getting)
        assert await asyncio.gather(*getting) == [200] * 12
