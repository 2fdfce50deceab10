"""What is deleted is gone: from the database, from the log, and nothing writes it again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from chatapp.models import Conversation, EventArchive
from chatapp.wiring import Worker, web
from tests.chatapp.listening import over_ndjson
from tests.chatapp.people import Person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]


async def texts_in_redis(path: str) -> list[bytes]:
    """Give what the log still has of a conversation, but for the marks that fence its drivers."""
    keys = [key async for key in web().redis.scan_iter(f"ss:{{{path.rpartition('/')[2]}}}:*")]
    return [key for key in keys if not key.endswith(b":meta")]


async def test_deleting_removes_the_log(guest: Person, worker: Worker) -> None:
    path = await guest.begin()
    gen = (await guest.ask(path))["generations"][0]["gen"]
    await worker.runtime.drive(gen)
    assert await texts_in_redis(path) != []
    await guest.send("delete", path)
    assert await texts_in_redis(path) == []


async def test_deleting_stops_what_runs_and_nothing_is_written_afterwards(guest: Person, worker: Worker) -> None:
    path = await guest.begin()
    gen = (await guest.ask(path, "Hello", "endless"))["generations"][0]["gen"]
    async with over_ndjson(guest, path, (await guest.sync(path))["cursor"]) as frames:
        driving = asyncio.create_task(worker.runtime.drive(gen))
        await anext(frames)  # The start.
        assert (await guest.send("delete", path)).status_code == 204
        await driving
    assert len(worker.runtime._drivers) == 0
    assert await texts_in_redis(path) == []
    assert not await EventArchive.objects.aexists()


async def test_a_deleted_conversation_that_waits_is_never_driven(guest: Person, worker: Worker) -> None:
    path = await guest.begin()
    gen = (await guest.ask(path))["generations"][0]["gen"]
    await guest.send("delete", path)
    await worker.runtime.drive(gen)
    assert await texts_in_redis(path) == []


async def test_without_redis_the_rows_are_deleted_all_the_same(guest: Person, no_redis: Any) -> None:
    path = await guest.begin()
    await guest.ask(path)
    await no_redis()
    assert (await guest.send("delete", path)).status_code == 204
    assert not await Conversation.objects.aexists()
