"""What a worker finds out about services and models, as people see it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from chatapp.models import Generation
from chatapp.wiring import Worker, web
from streaming.lifecycle import State
from streaming.upstream.breaker import FAILURES_TO_REST
from tests.chatapp.people import Person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]

MODELS = """
[[models]]
id = "away"
label = "Away"
adapter = "openai_chat"
model = "any"
address = "http://127.0.0.1:{port}/v1"

[[models]]
id = "narrow"
label = "Narrow"
adapter = "scripted"
model = "silent"
max_running = 1
"""


@pytest.fixture(autouse=True)
def _catalogue(site: None, settings: Settings, tmp_path: Path) -> Iterator[None]:
    settings.MODELS_FILE = tmp_path / "models.toml"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # Nobody listens there, and nobody else can.
        settings.MODELS_FILE.write_text(MODELS.format(port=taken.getsockname()[1]))
        yield


async def ask(person: Person, model: str) -> str:
    gen: str = (await person.ask(await person.begin(), "Hello", model))["generations"][0]["gen"]
    return gen


async def test_a_service_that_keeps_failing_is_shown_so_and_its_calls_end_at_once(
    guest: Person, worker: Worker
) -> None:
    codes = []
    for _ in range(FAILURES_TO_REST):
        gen = await ask(guest, "away")
        await worker.runtime.drive(gen)
        codes.append((await guest.get(f"/api/generations/{gen}")).json()["error"]["code"])
    models = (await guest.get("/api/models")).json()["models"]
    away = next(model for model in models if model["id"] == "away")
    assert (away["available"], "Failing since" in away["reason"]) == (False, True)
    assert (codes[0], codes[-1]) == ("connect_refused", "upstream_resting")


async def test_a_generation_that_waits_for_its_model_is_shown_as_queued(guest: Person, worker: Worker) -> None:
    running = asyncio.create_task(worker.runtime.drive(await ask(guest, "narrow")))
    while not await Generation.objects.filter(state=State.RUNNING).aexists():
        await asyncio.sleep(0.01)
    gen = await ask(guest, "narrow")
    ref = (await Generation.objects.aget(pk=gen)).ref
    waiting = asyncio.create_task(worker.runtime.drive(gen))
    while await worker.log.leases([ref]) == [None]:
        await asyncio.sleep(0.01)
    assert (await guest.get(f"/api/generations/{gen}")).json()["state"] == State.QUEUED
    await web().cancel(ref, "user")
    await waiting
    assert (await guest.get(f"/api/generations/{gen}")).json()["state"] == State.CANCELLED
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
