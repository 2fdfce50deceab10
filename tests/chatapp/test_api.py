"""The JSON API, one person at a time."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import pytest
from django.test import AsyncClient
from pytest_django import Settings

from chatapp.models import Conversation, Generation, Pane, Turn
from chatapp.wiring import web
from tests.chatapp.people import HOST, Person, a_turn, problem_code

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]


async def turns() -> int:
    return await Turn.objects.acount()


# Models


async def test_the_catalogue_says_what_can_be_used(guest: Person) -> None:
    models = {model["id"]: model for model in (await guest.get("/api/models")).json()["models"]}
    assert models["echo"]["available"]
    assert not models["keyless"]["available"]


async def test_a_model_that_cannot_be_used_says_why(guest: Person) -> None:
    models = {model["id"]: model for model in (await guest.get("/api/models")).json()["models"]}
    assert "SIDESTREAM_TEST_KEY" in models["keyless"]["reason"]


# Conversations


async def test_a_visitor_gets_no_cookie_before_they_have_a_conversation(guest: Person) -> None:
    await guest.get("/api/models")
    assert not guest.client.cookies


async def test_a_new_conversation_says_where_it_is(guest: Person) -> None:
    made = (await guest.post("/api/conversations")).json()
    assert made["url"] == f"/c/{made['id']}"


async def test_a_users_conversation_belongs_to_them(alice: Person) -> None:
    await alice.begin()
    assert (await Conversation.objects.select_related("user").aget()).user.username == "alice"  # type: ignore[union-attr]


async def test_a_guest_stays_the_same_guest(guest: Person) -> None:
    await guest.begin()
    await guest.begin()
    assert len({one.guest async for one in Conversation.objects.all()}) == 1


async def test_a_conversation_is_renamed(guest: Person) -> None:
    path = await guest.begin()
    assert (await guest.send("patch", path, {"title": "New"})).json()["title"] == "New"


async def test_a_deleted_conversation_is_gone(guest: Person) -> None:
    path = await guest.begin()
    await guest.ask(path)
    assert (await guest.send("delete", path)).status_code == 204
    assert not await Conversation.objects.aexists()


# Turns


async def test_a_turn_queues_a_generation_for_each_pane(guest: Person) -> None:
    turn = await guest.ask(await guest.begin(), "Hello", "echo", "warm")
    assert [(one["model"], one["state"]) for one in turn["generations"]] == [("echo", "queued"), ("warm", "queued")]


async def test_a_models_own_parameters_are_those_of_its_generation(guest: Person) -> None:
    turn = await guest.ask(await guest.begin(), "Hello", "warm")
    assert turn["generations"][0]["params"] == {"temperature": 1.5}


async def test_a_panes_parameters_win_over_its_models(guest: Person) -> None:
    wanted = a_turn("warm")
    wanted["panes"][0]["params"] = {"temperature": 0.5}
    turn = (await guest.post(f"{await guest.begin()}/turns", wanted)).json()["turn"]
    assert turn["generations"][0]["params"] == {"temperature": 0.5}


async def test_a_turn_is_dispatched(guest: Person, queued: Any) -> None:
    turn = await guest.ask(await guest.begin(), "Hello", "echo", "warm")
    assert sorted(queued()) == sorted(one["gen"] for one in turn["generations"])


async def test_a_turn_is_told_to_other_tabs(guest: Person) -> None:
    path = await guest.begin()
    turn = await guest.ask(path)
    conversation = path.rpartition("/")[2]
    (notice,) = await web().log.range(conversation, "0-0", "9999999999999-0", 10)
    assert json.loads(notice.entry.payload) == {"v": 1, "type": "turn", "turn": turn}


async def test_the_first_prompt_names_the_conversation(guest: Person) -> None:
    path = await guest.begin()
    await guest.ask(path, "Why is the sky blue?")
    assert (await guest.sync(path))["conversation"]["title"] == "Why is the sky blue?"


async def test_numbers_are_dense_over_turns(guest: Person, finish: Any) -> None:
    path = await guest.begin()
    await finish(await guest.ask(path, "One", "echo", "warm"))
    await guest.ask(path, "Two")
    assert [row.number async for row in Generation.objects.order_by("number")] == [1, 2, 3]


async def test_a_pane_that_is_left_out_becomes_inactive(guest: Person, finish: Any) -> None:
    path, wanted = await guest.begin(), a_turn("echo", "warm")
    await finish((await guest.post(f"{path}/turns", wanted)).json()["turn"])
    await guest.post(f"{path}/turns", a_turn(panes=wanted["panes"][:1]))
    assert [pane["id"] for pane in (await guest.sync(path))["panes"]] == [wanted["panes"][0]["id"]]


async def test_a_pane_that_was_left_out_comes_back(guest: Person, finish: Any) -> None:
    path, wanted = await guest.begin(), a_turn("echo", "warm")
    for panes in (wanted["panes"], wanted["panes"][:1]):
        await finish((await guest.post(f"{path}/turns", a_turn(panes=panes))).json()["turn"])
    swapped = wanted["panes"][::-1]
    await guest.post(f"{path}/turns", a_turn(panes=swapped))
    assert [pane["id"] for pane in (await guest.sync(path))["panes"]] == [pane["id"] for pane in swapped]


async def test_a_pane_keeps_its_id_from_turn_to_turn(guest: Person, finish: Any) -> None:
    path, wanted = await guest.begin(), a_turn()
    await finish((await guest.post(f"{path}/turns", wanted)).json()["turn"])
    await guest.post(f"{path}/turns", a_turn(panes=[{**wanted["panes"][0], "model": "warm"}]))
    assert (await Pane.objects.aget()).model == "warm"


async def test_two_conversations_may_use_the_same_pane_id(alice: Person, bob: Person) -> None:
    wanted = a_turn()
    await alice.post(f"{await alice.begin()}/turns", wanted)
    assert (await bob.post(f"{await bob.begin()}/turns", wanted)).status_code == 201


async def test_the_same_turn_again_gives_the_same_answer(guest: Person) -> None:
    path, wanted = await guest.begin(), a_turn()
    first = await guest.post(f"{path}/turns", wanted)
    again = await guest.post(f"{path}/turns", wanted)
    assert (again.status_code, again.json()) == (200, first.json())


async def test_the_same_turn_again_is_not_dispatched_again(guest: Person, queued: Any) -> None:
    path, wanted = await guest.begin(), a_turn()
    await guest.post(f"{path}/turns", wanted)
    await guest.post(f"{path}/turns", wanted)
    assert len(queued()) == 1


async def test_another_turn_with_the_same_key_is_refused(guest: Person) -> None:
    path, wanted = await guest.begin(), a_turn()
    await guest.post(f"{path}/turns", wanted)
    again = await guest.post(f"{path}/turns", {**wanted, "prompt": "Other"})
    assert problem_code(again, 422) == "key_reused"


async def test_of_the_same_turn_many_times_at_once_one_is_made(guest: Person) -> None:
    path, wanted = await guest.begin(), a_turn("echo", "warm")
    answers = await asyncio.gather(*(guest.post(f"{path}/turns", wanted) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert (await turns(), await Generation.objects.acount()) == (1, 2)


async def test_of_different_turns_at_once_one_is_made(guest: Person) -> None:
    path = await guest.begin()
    answers = await asyncio.gather(*(guest.post(f"{path}/turns", a_turn()) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 5


async def test_a_turn_is_refused_while_another_runs(guest: Person) -> None:
    path = await guest.begin()
    await guest.ask(path)
    assert problem_code(await guest.post(f"{path}/turns", a_turn()), 409) == "turn_running"


# What is refused, with nothing stored


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"prompt": ""}, "prompt_empty"),
        ({"prompt": "x" * 200_000}, "prompt_too_long"),
        ({"prompt": 7}, "invalid_field"),
        ({"panes": []}, "panes_count"),
        ({"panes": [{"id": str(uuid.uuid4()), "model": "echo"} for _ in range(50)]}, "panes_count"),
        ({"panes": [{"id": "p1", "model": "echo"}]}, "invalid_field"),
        ({"panes": [{"id": str(uuid.UUID(int=7)), "model": "echo"}] * 2}, "pane_repeated"),
        ({"panes": [{"id": str(uuid.UUID(int=7)), "model": "gpt-12"}]}, "unknown_model"),
        ({"panes": [{"id": str(uuid.UUID(int=7)), "model": "keyless"}]}, "model_unavailable"),
        ({"panes": [{"id": str(uuid.UUID(int=7)), "model": "echo", "params": {"temperature": 9}}]}, "invalid_param"),
        ({"panes": [{"id": str(uuid.UUID(int=7)), "model": "echo", "params": {"magic": 1}}]}, "invalid_param"),
    ],
)
async def test_a_bad_turn_is_refused_and_nothing_is_stored_or_started(
    guest: Person, queued: Any, changes: dict[str, Any], code: str
) -> None:
    path = await guest.begin()
    assert problem_code(await guest.post(f"{path}/turns", a_turn(**changes)), 400) == code
    assert (await turns(), await Pane.objects.acount(), queued()) == (0, 0, [])


async def test_one_bad_pane_of_many_stores_nothing(guest: Person) -> None:
    path = await guest.begin()
    assert problem_code(await guest.post(f"{path}/turns", a_turn("echo", "keyless")), 400) == "model_unavailable"
    assert not await Pane.objects.aexists()


@pytest.mark.parametrize("body", [b"{", b'{"prompt": "Hello"', b"\xff\xfe", b"[" * 100_000])
async def test_malformed_json_is_refused(guest: Person, body: bytes) -> None:
    path = await guest.begin()
    assert problem_code(await guest.post(f"{path}/turns", body), 400) == "malformed_json"


async def test_a_body_of_more_than_a_mebibyte_is_refused(guest: Person) -> None:
    path = await guest.begin()
    assert problem_code(await guest.post(f"{path}/turns", b'"' + b"x" * 2**20 + b'"'), 413) == "body_too_large"


async def test_a_form_of_more_than_a_mebibyte_is_refused(site: None) -> None:
    client = AsyncClient(enforce_csrf_checks=True)
    client.cookies["csrftoken"] = "a" * 32
    form = b"a=" + b"x" * 2**20
    response = await client.post("/api/conversations", form, content_type="application/x-www-form-urlencoded")
    assert problem_code(response, 413) == "body_too_large"


async def test_a_post_without_the_csrf_token_is_refused(site: None) -> None:
    stranger = Person(AsyncClient(enforce_csrf_checks=True))
    assert problem_code(await stranger.post("/api/conversations"), 403) == "csrf_failed"
    assert not await Conversation.objects.aexists()


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "https://testserver", "http://testserver:8000", "http://sub.testserver", ""],
)
async def test_a_post_from_another_origin_is_refused_with_a_token_too(site: None, origin: str) -> None:
    stranger = Person(AsyncClient(enforce_csrf_checks=True))
    stranger.client.cookies["csrftoken"] = token = "a" * 32
    response = await stranger.post("/api/conversations", **{"origin": origin, "x-csrftoken": token})
    assert problem_code(response, 403) == "csrf_failed"


async def test_a_page_of_ours_needs_no_token(site: None) -> None:
    """It read its token once; a sign-in in another tab has changed it since."""
    person = Person(AsyncClient(enforce_csrf_checks=True))
    person.client.cookies["csrftoken"] = "b" * 32
    outdated = {"origin": f"http://{HOST}", "x-csrftoken": "a" * 32}
    assert (await person.post("/api/conversations", **outdated)).status_code == 201
    assert (await person.post("/api/conversations", origin=f"http://{HOST}")).status_code == 201


async def test_a_page_of_an_origin_that_the_operator_named_needs_no_token(site: None, settings: Settings) -> None:
    settings.SIDESTREAM_ORIGINS = ["https://chat.example.org"]
    person = Person(AsyncClient(enforce_csrf_checks=True))
    assert (await person.post("/api/conversations", origin="https://chat.example.org")).status_code == 201


@pytest.mark.parametrize("path", ["/login", "/logout"])
async def test_a_form_of_a_page_of_ours_needs_no_token(site: None, path: str) -> None:
    client = AsyncClient(enforce_csrf_checks=True)
    response = await client.post(path, {}, headers={"origin": f"http://{HOST}"})
    assert response.status_code in (200, 302)
    assert (await client.post(path, {}, headers={"origin": "https://evil.example"})).status_code == 403


async def test_a_client_that_names_no_origin_shows_the_token(site: None) -> None:
    program = Person(AsyncClient(enforce_csrf_checks=True))
    page = (await program.get("/")).content.decode()
    token = page.partition('name="csrf-token" content="')[2].partition('"')[0]
    assert (await program.post("/api/conversations", **{"x-csrftoken": token})).status_code == 201


@pytest.mark.parametrize(
    "path", ["/api/", "/api/nothing", "/api/conversations/7", f"/api/conversations/{uuid.UUID(int=7)}/nothing"]
)
async def test_an_address_that_does_not_exist_is_a_problem_too(guest: Person, path: str) -> None:
    assert problem_code(await guest.get(path), 404) == "not_found"


async def test_a_method_that_does_not_exist_is_refused_with_those_that_do(guest: Person) -> None:
    response = await guest.get("/api/conversations")
    assert problem_code(response, 405) == "method_not_allowed"
    assert response["Allow"] == "POST"


# Cancel


async def test_a_queued_generation_is_cancelled_at_once(guest: Person) -> None:
    turn = await guest.ask(await guest.begin())
    response = await guest.post(f"/api/generations/{turn['generations'][0]['gen']}/cancel")
    assert (response.status_code, response.json()) == (200, {"state": "cancelled"})


async def test_cancelling_what_ended_says_how_it_ended(guest: Person, finish: Any) -> None:
    turn = await guest.ask(await guest.begin())
    await finish(turn)
    response = await guest.post(f"/api/generations/{turn['generations'][0]['gen']}/cancel")
    assert (response.status_code, response.json()) == (200, {"state": "completed"})


async def test_cancelling_what_runs_is_a_request(guest: Person, running: Any) -> None:
    gen = await running(guest)
    response = await guest.post(f"/api/generations/{gen}/cancel")
    assert (response.status_code, response.json()) == (202, {"state": "running"})


# One generation


async def test_a_generation_tells_its_state_and_promise(guest: Person, finish: Any) -> None:
    turn = await guest.ask(await guest.begin())
    await finish(turn)
    told = (await guest.get(f"/api/generations/{turn['generations'][0]['gen']}")).json()
    assert (told["state"], told["promise"], told["text_length"], told["finish"]) == (
        "completed",
        "completed",
        16,
        "stop",
    )


async def test_a_running_generation_is_replayable(guest: Person, running: Any) -> None:
    told = (await guest.get(f"/api/generations/{await running(guest)}")).json()
    assert (told["state"], told["promise"], told["text_length"]) == ("running", "replayable", 4)


async def test_without_redis_a_running_generation_is_a_problem_of_the_log(
    guest: Person, running: Any, no_redis: Any
) -> None:
    gen = await running(guest)
    await no_redis()
    assert problem_code(await guest.get(f"/api/generations/{gen}"), 503) == "log_unavailable"


async def test_without_redis_a_turn_is_stored_and_waits(guest: Person, no_redis: Any) -> None:
    path = await guest.begin()
    await no_redis()
    assert (await guest.ask(path))["generations"][0]["state"] == "queued"
