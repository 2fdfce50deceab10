"""Many who write at once: each gets their turn, and nobody is ever told that the database is locked."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from django.db import connection, connections, transaction

from chatapp.database import close_pool, in_database
from chatapp.models import Conversation, Generation, Turn
from chatapp.wiring import web
from tests.chatapp.making import a_whole_answer
from tests.chatapp.people import Person, a_turn, problem_code

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]

PEOPLE, TURNS, PROCESSES = 10, 3, 3
# Another process of the product, as the database sees it: it takes the write lock, holds it, and begins again.
WRITER = """
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], timeout=20, isolation_level=None)
print("ready", flush=True)
while True:
    database.execute("BEGIN IMMEDIATE")
    database.execute("UPDATE chatapp_conversation SET title = title")
    time.sleep(0.005)
    database.execute("COMMIT")
    time.sleep(0.005)
"""

only_sqlite = pytest.mark.skipif("connection.vendor != 'sqlite'", reason="other databases lock rows")


@pytest.fixture
def other_writers(site: None) -> Iterator[list[subprocess.Popen[str]]]:
    """Further processes that write to the same database all the time."""
    if connection.vendor != "sqlite":
        yield []
        return
    command = [sys.executable, "-c", WRITER, str(connection.settings_dict["NAME"])]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    yield started
    for process in started:
        process.kill()
        process.communicate()


async def one_persons_visit() -> None:
    """Ask, have it answered, rename, and ask again, as page and driver write it."""
    person = Person()
    path = await person.begin()
    for turn in range(TURNS):
        (one, other) = (await person.ask(path, f"Prompt {turn}", "echo", "warm"))["generations"]
        await asyncio.gather(answered(one["gen"]), answered(other["gen"]))
        assert (await person.send("patch", path, {"title": f"Title {turn}"})).status_code == 200
        assert len((await person.sync(path))["turns"]) == turn + 1


async def answered(gen: str) -> None:
    assert await web().store.begin(gen, 1)
    assert await web().store.finish(gen, 1, a_whole_answer(gen))


async def test_many_people_drivers_and_processes_write_at_once(
    other_writers: list[subprocess.Popen[str]], caplog: pytest.LogCaptureFixture
) -> None:
    await asyncio.gather(*(one_persons_visit() for _ in range(PEOPLE)))
    assert await Turn.objects.acount() == PEOPLE * TURNS
    assert await Generation.objects.filter(state="completed").acount() == 2 * PEOPLE * TURNS
    assert await Conversation.objects.filter(title=f"Title {TURNS - 1}").acount() == PEOPLE
    assert "locked" not in caplog.text
    assert [process.poll() for process in other_writers] == [None] * len(other_writers)


@asynccontextmanager
async def locked(path: str) -> AsyncIterator[None]:
    """Hold the lock that a turn in this conversation needs, from a thread and connection of its own."""
    taken, given_back = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def hold() -> None:
        with transaction.atomic():
            Conversation.objects.select_for_update().get(pk=path.rpartition("/")[2])
            loop.call_soon_threadsafe(taken.set)
            given_back.wait()

    holding = asyncio.create_task(in_database(hold))
    await taken.wait()
    try:
        yield
    finally:
        given_back.set()
        await holding


async def test_a_turn_waits_for_the_lock_and_is_added_then(guest: Person) -> None:
    path = await guest.begin()
    async with locked(path):
        asking = asyncio.create_task(guest.ask(path))
        # Others read meanwhile, again and again, and the turn still waits.
        for _ in range(10):
            assert (await guest.sync(path))["turns"] == []
        assert not asking.done()
    assert len((await asking)["generations"]) == 1


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Wait for a lock for a tenth of a second only."""
    with monkeypatch.context() as changed:
        changed.setitem(connections.settings["default"]["OPTIONS"], "timeout", 0.1)
        close_pool()  # So that every connection is a new one.
        yield
    close_pool()


@only_sqlite
@pytest.mark.usefixtures("impatient")
async def test_a_lock_that_is_held_for_too_long_is_told_in_our_words_and_costs_no_turn(guest: Person) -> None:
    path = await guest.begin()
    body = a_turn("echo")
    async with locked(path):
        response = await guest.post(f"{path}/turns", body)
        assert problem_code(response, 503) == "database_unavailable"
        assert "lock" not in response.content.decode()
    assert (await guest.post(f"{path}/turns", body)).status_code == 201
    assert len((await guest.sync(path))["turns"]) == 1
