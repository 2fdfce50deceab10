"""GET /metrics: what it tells, and whom."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest
from pytest_django import Settings

from chatapp.store import DjangoStore
from chatapp.wiring import offer
from streaming.events import Error, Start
from tests.chatapp.listening import over_ndjson
from tests.chatapp.making import outcome_of
from tests.chatapp.people import Person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]


async def measured(person: Person) -> dict[str, float]:
    response = await person.get("/metrics")
    assert response.status_code == 200
    lines = response.content.decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


async def test_it_tells_what_waits_and_what_runs(guest: Person, running: Any) -> None:
    await running(guest)
    await guest.ask(await guest.begin(), "Hello", "echo", "warm")
    told = await measured(guest)
    assert told['sidestream_generations{state="queued"}'] == 2
    assert told['sidestream_generations{state="running"}'] == 1


async def test_it_tells_which_errors_ended_answers_lately(guest: Person) -> None:
    gen = (await guest.ask(await guest.begin()))["generations"][0]["gen"]
    failed = Error("rate_limited", "Try later.", True, False, 0)
    await DjangoStore(offer).finish(gen, 1, outcome_of(gen, 1, Start("echo", "p"), failed))
    told = await measured(guest)
    assert told['sidestream_generations_ended_recently{code="rate_limited",state="failed"}'] == 1


async def test_it_counts_live_connections_and_frames(guest: Person, running: Any) -> None:
    before = (await measured(guest)).get('sidestream_frames_total{transport="ndjson"}', 0)
    await running(guest)
    path = await guest.begin()
    await guest.ask(path)
    async with over_ndjson(guest, path, "0-0") as frames:
        await anext(frames)
        assert (await measured(guest))["sidestream_streams"] == 1
    assert (await measured(guest))['sidestream_frames_total{transport="ndjson"}'] >= before


async def test_it_tells_how_long_redis_takes(guest: Person) -> None:
    assert 0 < (await measured(guest))["sidestream_redis_round_trip_seconds"] < 2


async def test_without_redis_it_still_tells_the_rest(guest: Person, no_redis: Any) -> None:
    await no_redis()
    told = await measured(guest)
    assert told["sidestream_workers"] != told["sidestream_workers"]  # Not a number.
    assert told['sidestream_generations{state="queued"}'] == 0


# Whom


async def status(person: Person, **headers: str) -> int:
    return int((await person.get("/metrics", **headers)).status_code)


async def test_from_elsewhere_there_is_nothing(guest: Person, settings: Settings) -> None:
    settings.METRICS_FROM = [ip_network("10.0.0.0/8")]
    assert await status(guest) == 404


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP"])
async def test_a_proxy_nearby_does_not_let_others_in(guest: Person, header: str) -> None:
    assert await status(guest, **{header: "203.0.113.7"}) == 404


async def test_a_token_lets_in_from_everywhere(guest: Person, settings: Settings) -> None:
    settings.METRICS_FROM, settings.METRICS_TOKEN = [], "a token"
    assert await status(guest) == 404
    assert await status(guest, authorization="Bearer another") == 404
    assert await status(guest, authorization="Bearer a token") == 200


async def test_without_a_token_an_empty_one_lets_nobody_in(guest: Person, settings: Settings) -> None:
    settings.METRICS_FROM, settings.METRICS_TOKEN = [], ""
    assert await status(guest, authorization="Bearer ") == 404
