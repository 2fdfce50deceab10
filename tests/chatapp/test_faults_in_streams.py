"""A fault in the middle of a live connection: the reader learns of it, nothing stays behind, and it can come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from asgiref.sync import sync_to_async
from django.contrib.sessions.models import Session
from django.db import connection, models
from pytest_django import Settings

from chatapp.consumers import FAULT
from chatapp.models import Generation
from chatapp.wiring import web
from tests.chatapp.listening import TRANSPORTS, close_code, socket_of
from tests.chatapp.people import Person, problem_code

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]

NOTICE = '{"v":1,"type":"turn","turn":{}}'


@asynccontextmanager
async def without_table(model: type[models.Model]) -> AsyncIterator[None]:
    """Let every query of a table fail, as when the database was restored from elsewhere."""
    name = model._meta.db_table
    await sync_to_async(_rename)(name, f"{name}_away")
    try:
        yield
    finally:
        await sync_to_async(_rename)(f"{name}_away", name)


def _rename(name: str, other: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {name} RENAME TO {other}")


@pytest.fixture
def _looked_up_each_time(settings: Settings) -> None:
    """Ask the database before every frame, in place of every minute."""
    settings.STREAM_RECHECK_S = 0.0


async def settled(before: set[asyncio.Task[object]]) -> None:
    """Wait until nothing of a connection is left: no place among the owner's, no watch, no task."""
    async with asyncio.timeout(5):
        while web().streams.count or web().tailer._watched or asyncio.all_tasks() - before:
            await asyncio.sleep(0.01)


@pytest.mark.usefixtures("_looked_up_each_time")
async def test_a_fault_inside_a_socket_closes_it_with_the_code_of_a_fault(guest: Person) -> None:
    path = await guest.begin()
    cursor = (await guest.sync(path))["cursor"]
    before = asyncio.all_tasks()
    socket = socket_of(guest, path, cursor)
    await socket.connect()
    async with without_table(Session):
        await web().log.announce(path.rpartition("/")[2], NOTICE)
        assert await close_code(socket) == FAULT
    await socket.wait()
    await settled(before)
    async with TRANSPORTS["websocket"](guest, path, cursor) as frames:
        assert (await anext(frames))["type"] == "events"


async def test_a_fault_before_a_socket_has_said_anything_closes_it_too(guest: Person) -> None:
    path = await guest.begin()
    socket = socket_of(guest, path)
    async with without_table(Generation):
        await socket.connect()
        assert await close_code(socket) == FAULT


async def test_a_fault_before_the_first_byte_is_a_problem_that_says_so(guest: Person) -> None:
    path = await guest.begin()
    async with without_table(Generation):
        assert problem_code(await guest.get(f"{path}/events?cursor=0-0"), 500) == "internal_error"


@pytest.mark.usefixtures("_looked_up_each_time")
@pytest.mark.parametrize("transport", ["sse", "ndjson"])
async def test_a_fault_inside_a_response_ends_it(guest: Person, transport: str) -> None:
    path = await guest.begin()
    cursor = (await guest.sync(path))["cursor"]
    before = asyncio.all_tasks()
    async with TRANSPORTS[transport](guest, path, cursor) as frames, without_table(Session):
        await web().log.announce(path.rpartition("/")[2], NOTICE)
        assert [frame async for frame in frames] == []
    await settled(before)
    async with TRANSPORTS[transport](guest, path, cursor) as frames:
        assert (await anext(frames))["type"] == "events"
