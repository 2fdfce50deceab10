"""With the web tier alone, a conversation that is opened tells the truth."""

from __future__ import annotations

import asyncio

import pytest

from chatapp.models import Generation
from chatapp.wiring import web
from streaming import takeover
from streaming.events import Start, TextDelta
from streaming.log.ports import Ref
from streaming.log.redis_format import append_keys
from tests.chatapp.conftest import say
from tests.chatapp.people import Person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(takeover, "LOOK_AGAIN_S", 0.05)


async def begun(guest: Person) -> tuple[str, Ref]:
    """Ask, and let a driver begin that then says nothing more."""
    path = await guest.begin()
    gen = (await guest.ask(path))["generations"][0]["gen"]
    assert await web().store.begin(gen, 1)
    await say(gen, Start("echo", "p"), TextDelta("half an ans"))
    return path, (await Generation.objects.select_related("conversation").aget(pk=gen)).ref


async def lose_lease(ref: Ref) -> None:
    await web().redis.hset(append_keys(ref)[1], "lease", 1)  # type: ignore[misc]


async def looked() -> None:
    """Wait until nothing is being looked at."""
    while web().lookout._looking:
        await asyncio.sleep(0.01)


async def state(guest: Person, path: str) -> tuple[str, str]:
    ((generation,),) = [turn["generations"] for turn in (await guest.sync(path))["turns"]]
    return generation["state"], generation["text"]


async def test_reading_ends_an_answer_whose_driver_is_lost(guest: Person) -> None:
    path, ref = await begun(guest)
    await lose_lease(ref)
    assert await state(guest, path) == ("running", "half an ans")
    await looked()
    assert await state(guest, path) == ("interrupted", "half an ans")


async def test_reading_leaves_a_driven_answer_alone(guest: Person) -> None:
    path, _ = await begun(guest)
    await guest.sync(path)
    await looked()
    assert await state(guest, path) == ("running", "half an ans")


async def test_a_driver_that_renews_its_lease_between_two_looks_keeps_its_answer(guest: Person) -> None:
    path, ref = await begun(guest)
    await lose_lease(ref)
    await guest.sync(path)
    await say(ref.gen, TextDelta("wer"), after=2)
    await looked()
    assert await state(guest, path) == ("running", "half an answer")


async def test_reading_leaves_what_waits_to_the_workers(guest: Person) -> None:
    path = await guest.begin()
    await guest.ask(path)
    await guest.sync(path)
    await looked()
    assert (await state(guest, path))[0] == "queued"
    assert (await Generation.objects.aget()).attempt == 0
