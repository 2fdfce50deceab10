"""What is one person's does not exist for another: on every route, over both transports."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from chatapp.models import Conversation, Generation
from tests.chatapp.listening import close_code, socket_of
from tests.chatapp.people import Person, a_turn, problem_code

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]

ROUTES: list[tuple[str, str, Any]] = [
    ("get", "/api/conversations/{conversation}/sync", None),
    ("get", "/api/conversations/{conversation}/events", None),
    ("post", "/api/conversations/{conversation}/turns", a_turn()),
    ("patch", "/api/conversations/{conversation}", {"title": "Mine now"}),
    ("delete", "/api/conversations/{conversation}", None),
    ("get", "/api/generations/{gen}", None),
    ("get", "/api/conversations/{conversation}/export", None),
    ("post", "/api/conversations/{conversation}/cancel", None),
    ("post", "/api/generations/{gen}/cancel", None),
    ("post", "/api/generations/{gen}/retry", {"key": "k"}),
    ("post", "/api/generations/{gen}/continue", {"key": "k"}),
]


@pytest.fixture
async def stranger(request: pytest.FixtureRequest, bob: Person, guest: Person) -> Person:
    """Either somebody with an account, or a guest with a conversation, or a guest with nothing."""
    if request.param == "bob":
        await bob.begin()
        return bob
    if request.param == "guest":
        await guest.begin()
        return guest
    return Person()


strangers = pytest.mark.parametrize("stranger", ["bob", "guest", "nobody"], indirect=True)


async def call(person: Person, method: str, path: str, body: Any) -> Any:
    return await (person.get(path) if method == "get" else person.send(method, path, body))


@strangers
@pytest.mark.parametrize(("method", "route", "body"), ROUTES, ids=lambda value: value if isinstance(value, str) else "")
async def test_every_route_hides_what_is_anothers(
    alice: Person, stranger: Person, running: Callable[[Person], Awaitable[str]], method: str, route: str, body: Any
) -> None:
    gen = await running(alice)
    conversation = str((await Generation.objects.aget(pk=gen)).conversation_id)
    response = await call(stranger, method, route.format(conversation=conversation, gen=gen), body)
    assert problem_code(response, 404) == "not_found"


@pytest.mark.parametrize(("method", "route", "body"), ROUTES, ids=lambda value: value if isinstance(value, str) else "")
async def test_what_does_not_exist_answers_just_the_same(alice: Person, method: str, route: str, body: Any) -> None:
    nothing = str(uuid.uuid4())
    response = await call(alice, method, route.format(conversation=nothing, gen=nothing), body)
    assert problem_code(response, 404) == "not_found"


@strangers
async def test_the_socket_hides_what_is_anothers(alice: Person, stranger: Person) -> None:
    socket = socket_of(stranger, await alice.begin())
    await socket.connect()
    assert await close_code(socket) == 4404


@strangers
async def test_the_page_hides_what_is_anothers(alice: Person, stranger: Person) -> None:
    path = await alice.begin()
    assert (await stranger.get(path.replace("/api/conversations/", "/c/"))).status_code == 404


async def test_a_refused_cancel_asks_nothing(alice: Person, bob: Person, running: Any) -> None:
    gen = await running(alice)
    await bob.post(f"/api/generations/{gen}/cancel")
    told = (await alice.get(f"/api/generations/{gen}")).json()
    assert told["state"] == "running"


async def test_a_refused_delete_deletes_nothing(alice: Person, bob: Person) -> None:
    path = await alice.begin()
    await bob.send("delete", path)
    assert await Conversation.objects.aexists()


async def test_a_guest_who_signs_in_keeps_their_conversations(alice: Person, guest: Person) -> None:
    path = await guest.begin()
    credentials = {"username": "alice", "password": "alice's password"}
    assert (await guest.client.post("/login", credentials)).status_code == 302
    assert (await alice.get(f"{path}/sync")).status_code == 200


async def test_who_signs_out_has_nothing_any_more(alice: Person) -> None:
    path = await alice.begin()
    await alice.client.post("/logout")
    assert problem_code(await alice.get(f"{path}/sync"), 404) == "not_found"


async def test_a_user_who_was_locked_out_has_nothing_any_more(alice: Person) -> None:
    path = await alice.begin()
    await User.objects.filter(username="alice").aupdate(is_active=False)
    assert problem_code(await alice.get(f"{path}/sync"), 404) == "not_found"
