"""Cancel as it is told: who asked, whether the driver knows, and whether the model's connection is closed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import AsyncClient
from hypothesis import given
from hypothesis import strategies as st

from chatapp.cancellation import cancellation_of
from chatapp.models import Generation
from chatapp.wiring import Worker, web
from streaming.events import TextDelta
from streaming.lifecycle import LIVE, State
from streaming.log.ports import LEASE_MS, Lease
from streaming.snapshot import Snapshot, requested
from tests.chatapp.conftest import say
from tests.chatapp.listening import TRANSPORTS, Listen
from tests.chatapp.people import Person

transports = pytest.mark.parametrize("listen", TRANSPORTS.values(), ids=TRANSPORTS.keys())
site = pytest.mark.usefixtures("site")


async def path_of(gen: str) -> str:
    return f"/api/conversations/{(await Generation.objects.aget(pk=gen)).conversation_id}"


async def cancel(person: Person, gen: str) -> Any:
    return await person.post(f"/api/generations/{gen}/cancel")


async def cancellation(person: Person, gen: str) -> Any:
    return (await person.get(f"/api/generations/{gen}")).json()["cancellation"]


# The states


def test_without_a_request_there_is_nothing_to_tell() -> None:
    assert cancellation_of(Snapshot("g", state=State.RUNNING), None) is None


@given(st.sampled_from(sorted(LIVE)), st.integers(0, 10**6), st.one_of(st.none(), st.integers(0, 2 * 10**6)))
def test_a_driver_knows_once_it_renewed_its_lease_after_the_request(
    state: State, at: int, renewed_at: int | None
) -> None:
    lease = None if renewed_at is None else Lease(state, 1, renewed_at + LEASE_MS, 0)
    told = cancellation_of(requested(Snapshot("g", state=state), at, "user"), lease)
    assert told is not None
    assert told["state"] == ("known" if renewed_at is not None and renewed_at > at else "requested")


def test_an_answered_request_says_whether_the_upstream_is_closed() -> None:
    cancel = {"reason": "user", "upstream": "unproven", "latency_ms": 7}
    snapshot = Snapshot("g", state=State.CANCELLED, cancel=cancel, timings={"cancel_asked_at": 5})
    expected = {"state": "answered", "by": "user", "at": 5, "upstream": "unproven", "latency_ms": 7}
    assert cancellation_of(snapshot, None) == expected


# Through the API


@site
async def test_a_request_is_shown_with_its_asker(guest: Person, running: Any) -> None:
    gen = await running(guest)
    await cancel(guest, gen)
    told = await cancellation(guest, gen)
    assert (told["state"], told["by"], told["upstream"]) == ("requested", "guest", None)


@site
async def test_a_request_of_somebody_signed_in_is_a_users(alice: Person, running: Any) -> None:
    gen = await running(alice)
    await cancel(alice, gen)
    assert (await cancellation(alice, gen))["by"] == "user"


@site
async def test_a_request_is_known_once_the_driver_wrote(guest: Person, running: Any) -> None:
    gen = await running(guest)
    await cancel(guest, gen)
    at = (await cancellation(guest, gen))["at"]
    while (await web().log.position("any"))[1] <= at:
        pass  # What comes within the request's own millisecond proves nothing.
    await say(gen, TextDelta("!"), after=2)
    assert (await cancellation(guest, gen))["state"] == "known"


@site
async def test_an_ended_generation_says_how_it_was_stopped(guest: Person) -> None:
    turn = await guest.ask(await guest.begin())
    gen = turn["generations"][0]["gen"]
    await cancel(guest, gen)
    told = await cancellation(guest, gen)
    assert (told["state"], told["by"], told["upstream"]) == ("answered", "guest", "closed")


@site
async def test_sync_tells_of_an_open_request(guest: Person, running: Any) -> None:
    gen = await running(guest)
    await cancel(guest, gen)
    ((generation,),) = [turn["generations"] for turn in (await guest.sync(await path_of(gen)))["turns"]]
    assert generation["cancel_requested"]["by"] == "guest"


@site
@transports
async def test_every_tab_is_told_at_once_and_once(guest: Person, running: Any, listen: Listen) -> None:
    gen = await running(guest)
    path = await path_of(gen)
    cursor = (await guest.sync(path))["cursor"]
    await cancel(guest, gen)
    await cancel(guest, gen)
    async with listen(guest, path, cursor) as frames:
        (view,) = (await anext(frames))["events"]
    assert (view["type"], view["gen"], view["by"]) == ("cancel", gen, "guest")


# All of a conversation


@site
async def test_all_that_waits_is_stopped_at_once(guest: Person) -> None:
    path = await guest.begin()
    turn = await guest.ask(path, "Hello", "echo", "warm")
    response = await guest.post(f"{path}/cancel")
    assert response.status_code == 200
    assert response.json() == {"generations": [{"id": one["gen"], "state": "cancelled"} for one in turn["generations"]]}


@site
async def test_stopping_all_is_a_request_while_something_runs(guest: Person, running: Any) -> None:
    gen = await running(guest)
    response = await guest.post(f"{await path_of(gen)}/cancel")
    assert (response.status_code, response.json()["generations"][0]["state"]) == (202, "running")


@site
async def test_stopping_all_leaves_what_ended(guest: Person, finish: Any) -> None:
    path = await guest.begin()
    await finish(await guest.ask(path))
    response = await guest.post(f"{path}/cancel")
    assert (response.status_code, response.json()) == (200, {"generations": []})


@site
async def test_a_worker_answers_the_request_of_whoever_asked(alice: Person, worker: Worker) -> None:
    path = await alice.begin()
    gen = (await alice.ask(path, "Hello", "endless"))["generations"][0]["gen"]
    async with TRANSPORTS["ndjson"](alice, path, (await alice.sync(path))["cursor"]) as frames:
        driving = asyncio.create_task(worker.runtime.drive(gen))
        await anext(frames)  # The start.
        await cancel(alice, gen)
        await driving
    told = await cancellation(alice, gen)
    assert (told["by"], told["upstream"]) == ("user", "closed")


# By the operator


async def signed_in_staff(**rights: bool) -> Person:
    user = await User.objects.acreate_user("operator", is_staff=True, **rights)
    person = Person(AsyncClient())
    await person.client.aforce_login(user)
    return person


async def stop_in_admin(person: Person, gen: str) -> int:
    form = {"action": "stop", "_selected_action": [gen]}
    return int((await person.client.post("/admin/chatapp/generation/", form)).status_code)


@site
async def test_the_operator_stops_anybodys_answer_and_is_named(guest: Person, running: Any) -> None:
    gen = await running(guest)
    assert await stop_in_admin(await signed_in_staff(is_superuser=True), gen) == 302
    assert (await cancellation(guest, gen))["by"] == "operator"


@site
async def test_staff_who_are_not_the_operator_stop_nothing(guest: Person, running: Any) -> None:
    gen = await running(guest)
    staff = await signed_in_staff()
    permission = await Permission.objects.aget(codename="view_generation")
    await (await User.objects.aget(username="operator")).user_permissions.aadd(permission)
    await stop_in_admin(staff, gen)
    assert await cancellation(guest, gen) is None
