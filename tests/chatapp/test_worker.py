"""A real Celery worker, and the ways in which the broker may be away."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils.timezone import now
from pytest_django import Settings

from chatapp import presence
from chatapp.dispatch import QUEUE, Dispatcher
from chatapp.models import Generation
from chatapp.redisurl import broker_url
from chatapp.wiring import web
from streaming.lifecycle import State
from tests.chatapp.conftest import MODELS
from tests.chatapp.people import Person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]

ROOT = Path(__file__).parents[2]
# Between two looks at a state that another process changes.
LOOK_AGAIN_S = 0.02


def database_url() -> str:
    """Give the test database's address, so that another process can open it too."""
    if connection.vendor == "sqlite":
        return f"sqlite:///{connection.settings_dict['NAME']}"
    base, _, _ = os.environ["DATABASE_URL"].rpartition("/")
    return f"{base}/{connection.settings_dict['NAME']}"


@pytest.fixture
def worker_process(site: None, redis_url: str, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker as `manage.py up` starts it."""
    environ = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "REDIS_URL": redis_url,
        "MODELS_FILE": str(MODELS),
        "SIDESTREAM_VAR": str(tmp_path),
        "SIDESTREAM_DRAIN_GRACE_S": "1",
    }
    command = [sys.executable, "-m", "celery", "-A", "chatapp", "worker", "--without-gossip", "--without-mingle"]
    process = subprocess.Popen(command, env=environ, cwd=ROOT)
    yield process
    process.kill()
    process.wait()


async def until_it_lives() -> None:
    while not await presence.living(web().redis):
        await asyncio.sleep(LOOK_AGAIN_S)


async def state_of(gen: str) -> str:
    return (await Generation.objects.aget(pk=gen)).state


async def until_state(gen: str, state: State, worker: subprocess.Popen[bytes]) -> None:
    """Wait for a state that the worker brings about. The test's own timeout is the bound."""
    while await state_of(gen) != state:
        assert worker.poll() is None, "the worker ended"
        await asyncio.sleep(LOOK_AGAIN_S)


async def test_a_turn_is_answered_by_a_worker(guest: Person, worker_process: subprocess.Popen[bytes]) -> None:
    await until_it_lives()
    path = await guest.begin()
    gen = (await guest.ask(path, "Say this"))["generations"][0]["gen"]
    await until_state(gen, State.COMPLETED, worker_process)
    assert (await Generation.objects.aget(pk=gen)).text == "Say this"


async def test_a_worker_that_is_told_to_stop_ends_what_it_drives(
    guest: Person, worker_process: subprocess.Popen[bytes]
) -> None:
    await until_it_lives()
    gen = (await guest.ask(await guest.begin(), "Say this", "endless"))["generations"][0]["gen"]
    await until_state(gen, State.RUNNING, worker_process)
    worker_process.send_signal(signal.SIGTERM)
    while await presence.living(web().redis):
        await asyncio.sleep(LOOK_AGAIN_S)
    assert worker_process.poll() is None  # It takes no more, and says so, while it lets its answers go on.
    assert await asyncio.to_thread(worker_process.wait, 20) == 0
    assert (await state_of(gen)) == State.INTERRUPTED


async def test_a_turn_that_nobody_was_told_of_is_found_by_a_worker(
    guest: Person, worker_process: subprocess.Popen[bytes]
) -> None:
    gen = (await guest.ask(await guest.begin(), "Say this"))["generations"][0]["gen"]
    await web().redis.delete(QUEUE)
    await Generation.objects.filter(pk=gen).aupdate(queued_at=now() - timedelta(minutes=1))
    await until_state(gen, State.COMPLETED, worker_process)


# Without a broker


@pytest.fixture
def no_broker(settings: Settings, tmp_path: Path) -> None:
    settings.CELERY_BROKER_URL = broker_url(f"unix://{tmp_path}/nothing.sock")


@pytest.mark.usefixtures("no_broker")
def test_a_message_without_a_broker_keeps_nobody_waiting() -> None:
    dispatcher = Dispatcher()
    began = time.monotonic()
    dispatcher.send("a generation")
    assert time.monotonic() - began < 0.1
    dispatcher.join()


@pytest.mark.usefixtures("no_broker")
def test_messages_without_a_broker_do_not_pile_up() -> None:
    dispatcher = Dispatcher(max_waiting=5)
    for _ in range(500):
        dispatcher.send("a generation")
    assert dispatcher.waiting <= 5
    dispatcher.join()


def test_after_the_broker_is_back_messages_go_out(
    settings: Settings, tmp_path: Path, redis_url: str, queued: Callable[[], list[str]]
) -> None:
    dispatcher = Dispatcher()
    settings.CELERY_BROKER_URL = broker_url(f"unix://{tmp_path}/nothing.sock")
    dispatcher.send("lost")
    dispatcher.join()
    settings.CELERY_BROKER_URL = broker_url(redis_url)
    dispatcher.send("sent")
    dispatcher.join()
    assert queued() == ["sent"]


def test_a_worker_whose_broker_is_away_looks_again_at_least_every_two_seconds(tmp_path: Path) -> None:
    environ = {**os.environ, "REDIS_URL": f"unix://{tmp_path}/nothing.sock", "SIDESTREAM_VAR": str(tmp_path)}
    command = [sys.executable, "-m", "celery", "-A", "chatapp", "worker", "--without-gossip", "--without-mingle"]
    with subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as worker:
        assert worker.stdout
        told = (re.search(rb"Trying again in ([\d.]+) second", line) for line in worker.stdout)
        waits = [float(found[1]) for found in itertools.islice(filter(None, told), 6)]
        worker.kill()
    assert max(waits) <= 2
