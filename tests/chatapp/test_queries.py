"""How much of the database a request takes. A hundred people may ask at the same moment."""

from __future__ import annotations

from typing import Any

import pytest

from chatapp.admission import line
from chatapp.database import in_database
from chatapp.store import DjangoStore
from chatapp.wiring import offer, web
from tests.chatapp.listening import TRANSPORTS
from tests.chatapp.people import Person, a_turn
from tests.chatapp.queries import noted_queries
from tests.chatapp.test_answers import stopped

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]

NOTICE = '{"v":1,"type":"turn","turn":{}}'
# The session is one, the line of those who wait is one or two.
ASK = 9


async def test_a_first_turn_takes_few_queries(guest: Person) -> None:
    path = await guest.begin()
    async with noted_queries() as queries:
        await guest.ask(path, "Hello", "echo", "warm")
    assert len(queries.asked) <= ASK, queries.asked


async def test_a_turn_in_the_same_panes_takes_no_more(guest: Person, finish: Any) -> None:
    path, wanted = await guest.begin(), a_turn("echo", "warm")
    await finish((await guest.post(f"{path}/turns", wanted)).json()["turn"])
    async with noted_queries() as queries:
        assert (await guest.post(f"{path}/turns", {**wanted, "key": "another"})).status_code == 201
    assert len(queries.asked) <= ASK, queries.asked


@pytest.mark.parametrize("kind", ["retry", "continue"])
async def test_another_answer_takes_few_queries(guest: Person, kind: str) -> None:
    _, gen = await stopped(guest)
    async with noted_queries() as queries:
        assert (await guest.post(f"/api/generations/{gen}/{kind}")).status_code == 201
    assert len(queries.asked) <= ASK, queries.asked


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_live_connection_takes_two_queries(guest: Person, transport: str) -> None:
    path = await guest.begin()
    cursor = (await guest.sync(path))["cursor"]
    async with noted_queries() as queries, TRANSPORTS[transport](guest, path, cursor) as frames:
        await web().log.announce(path.rpartition("/")[2], NOTICE)
        await anext(frames)
    assert len(queries.asked) <= 2, queries.asked


async def test_the_job_of_a_first_turn_takes_one_query(guest: Person) -> None:
    gen = (await guest.ask(await guest.begin()))["generations"][0]["gen"]
    async with noted_queries() as queries:
        await DjangoStore(offer).job(gen)
    assert len(queries.asked) <= 1, queries.asked


async def test_no_table_is_read_from_end_to_end(guest: Person, alice: Person) -> None:
    path = await guest.begin()
    async with noted_queries() as queries:
        await alice.ask(await alice.begin())
        await guest.ask(path)
        assert len(await in_database(line)) == 2
        await DjangoStore(offer).live(1000)
        await guest.sync(path)
    assert not queries.scans
