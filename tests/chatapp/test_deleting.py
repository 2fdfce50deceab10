"""What is deleted is gone: from the database, from the log, and nothing writes it again."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from django.db.models.deletion import Collector

from chatapp.models import Conversation, EventArchive
from chatapp.wiring import Worker, web
from tests.chatapp.listening import over_ndjson
from tests.chatapp.people import Person, a_turn

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]


async def texts_in_redis(path: str) -> list[bytes]:
    """Give what the log still has of a conversation, but for the marks that fence its drivers and notices."""
    keys = [key async for key in web().redis.scan_iter(f"ss:{{{path.rpartition('/')[2]}}}:*")]
    return [key for key in keys if not key.endswith((b":meta", b":gone"))]


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


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """
    Hold a deletion after Django has looked for what there is, before it deletes that, where it has no hook.

    The first event says that it has come so far, the second lets it go on.
    """
    came, go, delete = threading.Event(), threading.Event(), Collector.delete

    def hold(collector: Collector) -> Any:
        came.set()
        go.wait(10)
        return delete(collector)

    monkeypatch.setattr(Collector, "delete", hold)
    return came, go


async def test_a_turn_that_is_added_while_its_conversation_is_deleted_does_not_stop_that(
    guest: Person, held: tuple[threading.Event, threading.Event]
) -> None:
    came, go = held
    path = await guest.begin()
    deleting = asyncio.create_task(guest.send("delete", path))
    await asyncio.to_thread(came.wait, 10)
    asking = asyncio.create_task(guest.post(f"{path}/turns", a_turn("echo")))
    await asyncio.wait([asking], timeout=0.3)  # It waits for the deletion's lock.
    go.set()
    assert (await deleting).status_code == 204
    assert (await asking).status_code == 404
    assert not await Conversation.objects.aexists()
