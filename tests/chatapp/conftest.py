"""People, and the sides of the application around them."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connections
from django.test import AsyncClient
from pytest_django import Settings

from chatapp.database import close_pool
from chatapp.dispatch import QUEUE, dispatcher
from chatapp.ending import end
from chatapp.models import Generation
from chatapp.redisurl import broker_url
from chatapp.store import DjangoStore
from chatapp.wiring import Worker, close_web, offer, web
from streaming.events import Start, TextDelta
from streaming.lifecycle import State
from streaming.log.codec import entry_of
from streaming.log.ports import Batch
from tests.chatapp.making import a_whole_answer
from tests.chatapp.people import Person

MODELS = Path(__file__).parent / "models.toml"


@pytest.fixture(scope="session", autouse=True)
def pool(django_db_setup: None) -> Iterator[None]:
    """PostgreSQL drops no database that somebody is connected to."""
    yield
    close_pool()


@pytest.fixture
async def database(transactional_db: None) -> AsyncIterator[None]:
    """Give the test database to async tests, and close the connection of asgiref's thread, where their queries run."""
    yield
    await sync_to_async(connections.close_all)()


@pytest.fixture
async def site(
    settings: Settings, empty_redis: str, database: None, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    """Point the application at the session's Redis and at the tests' models; take its connections down at the end."""
    monkeypatch.delenv("SIDESTREAM_TEST_KEY", raising=False)
    settings.REDIS_URL = empty_redis
    settings.MODELS_FILE = MODELS
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.CELERY_BROKER_URL = broker_url(empty_redis)
    yield
    await close_web()
    dispatcher.join()


@pytest.fixture
async def guest(site: None) -> Person:
    """Has no account; their cookie is all that they are."""
    return Person()


@pytest.fixture
async def alice(site: None) -> Person:
    return await _signed_in("alice")


@pytest.fixture
async def bob(site: None) -> Person:
    """Has an account too, and no right to anything of alice's."""
    return await _signed_in("bob")


async def _signed_in(name: str) -> Person:
    user = await User.objects.acreate_user(name, password=f"{name}'s password")
    person = Person(AsyncClient())
    await person.client.aforce_login(user)
    return person


@pytest.fixture
def queued(site: None, empty_redis: str) -> Callable[[], list[str]]:
    """Give the UUIDs of the generations that wait in the workers' queue."""

    def read() -> list[str]:
        dispatcher.join()
        with redis.Redis.from_url(empty_redis) as client:
            messages = client.lrange(QUEUE, 0, -1)
        return [_argument(message) for message in messages]

    return read


def _argument(message: bytes) -> str:
    """Read the one argument of a task's message."""
    arguments, *_ = json.loads(base64.b64decode(json.loads(message)["body"]))
    return str(arguments[0])


@pytest.fixture
async def worker(site: None) -> AsyncIterator[Worker]:
    """A worker's runtime, on the test's own loop."""
    built = Worker.build()
    serving = asyncio.create_task(built.runtime.run())
    yield built
    await end(serving)
    await built.close()


@pytest.fixture
def finish(site: None) -> Callable[[dict[str, Any]], Awaitable[None]]:
    """End all generations of a turn with a whole answer, as their drivers would."""

    async def finish(turn: dict[str, Any]) -> None:
        store = DjangoStore(offer)
        for one in turn["generations"]:
            assert await store.finish(one["gen"], 1, a_whole_answer(one["gen"]))

    return finish


@pytest.fixture
def running(site: None) -> Callable[[Person], Awaitable[str]]:
    """Let a person ask, and a driver answer "Good" and go on; give the generation's UUID."""

    async def run(person: Person) -> str:
        gen: str = (await person.ask(await person.begin()))["generations"][0]["gen"]
        await DjangoStore(offer).begin(gen, 1)
        await say(gen, Start("echo", "p"), TextDelta("Good"))
        return gen

    return run


async def say(gen: str, *bodies: Any, after: int = 0) -> None:
    """Append events to a generation's log as its driver; `after` is the last seq that was said."""
    row = await Generation.objects.aget(pk=gen)
    log = web().log
    if after == 0:
        await log.claim(row.ref, 0)
    entries = tuple(entry_of(row.ref, 1, seq, body) for seq, body in zip(itertools.count(after + 1), bodies))
    (answer,) = await log.append([Batch(row.ref, 1, after, State.RUNNING, entries)])
    assert not isinstance(answer, Exception), answer


@pytest.fixture
def no_redis(site: None, settings: Settings, tmp_path: Path) -> Callable[[], Awaitable[None]]:
    """Take Redis away from the web side."""

    async def take_away() -> None:
        await close_web()
        settings.REDIS_URL = f"unix://{tmp_path}/nothing.sock"

    return take_away
