"""Ordinary events are no errors in the log, and faults still are."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from logging.config import dictConfig

import pytest
from django.conf import settings as configured
from pytest_django import Settings

from tests.chatapp.people import Person


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What the console is told, with the handler as the settings make it."""
    console, root = io.StringIO(), logging.getLogger()
    monkeypatch.setattr("sys.stderr", console)
    before = list(root.handlers), root.level
    dictConfig(configured.LOGGING)
    yield console
    root.handlers[:], root.level = before


@pytest.mark.parametrize(
    ("name", "level", "message", "more"),
    [
        (
            "django.security.DisallowedHost",
            logging.ERROR,
            "Invalid HTTP_HOST header: 'evil.example'.",
            {"status_code": 400},
        ),
        ("celery.worker.consumer.consumer", logging.ERROR, "consumer: Cannot connect to redis: refused.", {}),
        ("celery.worker.consumer.consumer", logging.WARNING, "consumer: Connection to broker lost. Trying again", {}),
    ],
)
def test_what_happens_every_day_is_a_warning_of_one_line(
    said: io.StringIO, name: str, level: int, message: str, more: dict[str, int]
) -> None:
    logging.getLogger(name).log(level, message, exc_info=OSError("refused"), extra=more)
    assert said.getvalue() == f"WARNING {name}: {message}\n"


@pytest.mark.parametrize("name", ["chatapp.consumers", "celery.worker.strategy", "django.request", "asyncio"])
def test_a_fault_is_an_error_with_its_traceback(said: io.StringIO, name: str) -> None:
    logging.getLogger(name).error("it failed", exc_info=ValueError("a fault"), extra={"status_code": 500})
    assert f"ERROR {name}: it failed" in said.getvalue()
    assert "ValueError: a fault" in said.getvalue()


@pytest.mark.django_db(transaction=True)
async def test_what_clients_get_wrong_is_no_error(site: None, said: io.StringIO, guest: Person) -> None:
    path = await guest.begin()
    await guest.get("/", host="evil.example")
    await guest.get("/nowhere")
    await guest.get("/api/nowhere")
    await guest.post("/api/conversations", b"{")
    await guest.post("/api/conversations", b"x" * 2**21)
    await guest.post(f"{path}/turns", {"prompt": ""})
    await guest.get(f"{path}/export?format=pdf")
    await guest.get(f"{path}/events?cursor=nonsense")
    await guest.send("delete", "/api/models")
    assert "ERROR" not in said.getvalue()
    assert "Traceback" not in said.getvalue()


@pytest.mark.django_db(transaction=True)
async def test_a_redis_that_is_away_is_said_once(
    site: None, said: io.StringIO, guest: Person, settings: Settings
) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    for _ in range(5):
        assert (await guest.get("/readyz")).status_code == 503
    lines = said.getvalue().splitlines()
    assert [line for line in lines if "ERROR" in line] == []
    assert len([line for line in lines if "not ready: redis" in line]) <= 1
