"""Stop gets through whatever has become of the session: a page has the key of each answer that it shows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from pytest_django import Settings

from chatapp.models import Generation
from tests.chatapp.people import Person, problem_code

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]

Running = Callable[[Person], Awaitable[str]]


async def path_of(gen: str) -> str:
    return f"/api/conversations/{(await Generation.objects.aget(pk=gen)).conversation_id}"


async def shown(person: Person, gen: str) -> dict[str, Any]:
    """Give an answer as the person's page knows it."""
    (answer,) = (await person.sync(await path_of(gen)))["turns"][0]["generations"]
    return dict(answer)


async def is_asked_to_stop(gen: str, by: Person) -> bool:
    return (await by.get(f"/api/generations/{gen}")).json()["cancellation"] is not None


async def signed_out(person: Person, _: Settings) -> None:
    await person.client.post("/logout")


async def without_cookies(person: Person, _: Settings) -> None:
    person.client.cookies.clear()


async def session_ended(_: Person, __: Settings) -> None:
    await Session.objects.all().adelete()


async def key_changed(_: Person, settings: Settings) -> None:
    settings.SECRET_KEY = "another key, after a restart"


LOSSES = [signed_out, without_cookies, session_ended, key_changed]


@pytest.mark.parametrize("lose", LOSSES)
@pytest.mark.parametrize("of_all", [False, True], ids=["stop", "stop all"])
async def test_stop_gets_through_after_the_session_is_gone(
    alice: Person, running: Running, settings: Settings, lose: Any, of_all: bool
) -> None:
    gen = await running(alice)
    path, keys = await path_of(gen), [(await shown(alice, gen))["stop_key"]]
    await lose(alice, settings)
    address = f"{path}/cancel" if of_all else f"/api/generations/{gen}/cancel"
    assert problem_code(await alice.post(address), 404) == "not_found"
    response = await alice.post(address, {"stop_keys": keys})
    told = response.json()["generations"][0] if of_all else response.json()
    assert (response.status_code, told["state"]) == (202, "running")


async def test_a_guests_tab_stops_what_a_sign_in_in_another_tab_adopted(
    alice: Person, guest: Person, running: Running
) -> None:
    gen = await running(guest)
    await guest.client.post("/login", {"username": "alice", "password": "alice's password"})
    assert (await guest.post(f"/api/generations/{gen}/cancel")).status_code == 202
    assert await is_asked_to_stop(gen, alice)


async def test_a_key_stops_its_own_answer_only(alice: Person, bob: Person, running: Running) -> None:
    mine, theirs = await running(bob), await running(alice)
    key = (await shown(bob, mine))["stop_key"]
    response = await bob.post(f"/api/generations/{theirs}/cancel", {"stop_keys": [key]})
    assert problem_code(response, 404) == "not_found"
    response = await bob.post(f"{await path_of(theirs)}/cancel", {"stop_keys": [key]})
    assert problem_code(response, 404) == "not_found"
    assert not await is_asked_to_stop(theirs, alice)


async def test_a_key_opens_nothing_else(alice: Person, running: Running) -> None:
    gen = await running(alice)
    keys = {"stop_keys": [(await shown(alice, gen))["stop_key"]], "key": "k"}
    stranger = Person()
    for path in (f"{await path_of(gen)}/turns", f"/api/generations/{gen}/retry", f"/api/generations/{gen}/continue"):
        body = keys if "turns" not in path else {**keys, "prompt": "p", "panes": [{"id": gen, "model": "echo"}]}
        assert problem_code(await stranger.post(path, body), 404) == "not_found"


async def test_no_key_and_the_empty_one_of_an_older_row_stop_nothing(alice: Person, running: Running) -> None:
    gen = await running(alice)
    await Generation.objects.aupdate(stop_key="")
    assert problem_code(await Person().post(f"/api/generations/{gen}/cancel", {"stop_keys": []}), 404) == "not_found"
    response = await Person().post(f"/api/generations/{gen}/cancel", {"stop_keys": [""]})
    assert problem_code(response, 400) == "invalid_field"
    assert (await alice.post(f"/api/generations/{gen}/cancel")).status_code == 202


@pytest.mark.parametrize("keys", ["abc", [1], [None], ["a b"], ["x" * 65], [[]], {"a": 1}, ["k"] * 257])
async def test_what_is_no_list_of_keys_is_refused(alice: Person, running: Running, keys: Any) -> None:
    gen = await running(alice)
    response = await alice.post(f"/api/generations/{gen}/cancel", {"stop_keys": keys})
    assert problem_code(response, 400) == "invalid_field"


async def test_every_answer_has_a_key_of_its_own_while_it_is_live(alice: Person, finish: Any) -> None:
    path = await alice.begin()
    turn = await alice.ask(path, "Hello", "echo", "warm")
    keys = {answer["stop_key"] for answer in turn["generations"]}
    assert len(keys) == 2
    assert all(len(key) == 32 for key in keys)
    await finish(turn)
    assert ["stop_key" in answer for answer in (await alice.sync(path))["turns"][0]["generations"]] == [False, False]


async def test_a_key_stands_in_no_export_and_no_state(alice: Person, running: Running) -> None:
    gen = await running(alice)
    key = (await shown(alice, gen))["stop_key"]
    for path in (f"/api/generations/{gen}", f"{await path_of(gen)}/export?partial=1"):
        assert key not in (await alice.get(path)).content.decode()
