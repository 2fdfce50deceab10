"""How much of the database a request takes. A hundred people may ask at the same moment."""

from __future__ import annotations

import pytest

from chatapp.admission import line
from chatapp.database import in_database
from chatapp.store import DjangoStore
from chatapp.wiring import offer, web
from tests.chatapp.listening import TRANSPORTS
from tests.chatapp.people import Person
from tests.chatapp.queries import noted_queries

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]

NOTICE = '{"v":1,"type":"turn","turn":{}}'


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
