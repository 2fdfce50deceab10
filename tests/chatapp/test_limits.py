"""What one owner may take, and the places of those who wait."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pytest_django import Settings

from chatapp.errors import Problem
from chatapp.models import Conversation, Generation
from chatapp.owners import Owner
from chatapp.presence import connect
from chatapp.streams import Streams
from chatapp.wiring import web
from tests.chatapp.people import Person, a_turn, problem_code

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]

ALICE, BOB = Owner(user=1), Owner(user=2)


async def ask(person: Person, path: str, *models: str) -> Any:
    return await person.post(f"{path}/turns", a_turn(*models))


# Answers at a time


async def test_an_owner_has_so_many_answers_at_a_time(guest: Person, settings: Settings) -> None:
    settings.MAX_RUNNING = 2
    await ask(guest, await guest.begin(), "echo", "warm")
    response = await ask(guest, await guest.begin())
    assert problem_code(response, 429) == "too_many_running"
    assert response["Retry-After"] == str(response.json()["retry_after"])


async def test_a_turn_that_would_be_too_much_stores_nothing(guest: Person, settings: Settings) -> None:
    settings.MAX_RUNNING = 2
    path = await guest.begin()
    await ask(guest, path, "echo", "echo", "echo")
    assert not await Generation.objects.aexists()


async def test_what_ended_makes_room(guest: Person, finish: Any, settings: Settings) -> None:
    settings.MAX_RUNNING = 1
    await finish(await guest.ask(await guest.begin()))
    assert (await ask(guest, await guest.begin())).status_code == 201


async def test_one_owners_answers_do_not_count_for_another(guest: Person, alice: Person, settings: Settings) -> None:
    settings.MAX_RUNNING = 1
    await guest.ask(await guest.begin())
    assert (await ask(alice, await alice.begin())).status_code == 201


async def test_of_prompts_at_once_only_so_many_are_taken(guest: Person, settings: Settings) -> None:
    settings.MAX_RUNNING = 3
    paths = [await guest.begin() for _ in range(6)]
    answers = await asyncio.gather(*(ask(guest, path) for path in paths))
    assert sorted(answer.status_code for answer in answers) == [201] * 3 + [429] * 3


async def test_another_answer_counts_too(guest: Person, finish: Any, settings: Settings) -> None:
    turn = await guest.ask(await guest.begin())
    await finish(turn)
    await guest.ask(await guest.begin())
    settings.MAX_RUNNING = 1
    response = await guest.post(f"/api/generations/{turn['generations'][0]['gen']}/retry", {"key": "k"})
    assert problem_code(response, 429) == "too_many_running"


# Rates


async def test_an_owner_has_so_many_prompts_a_minute(guest: Person, finish: Any, settings: Settings) -> None:
    settings.PROMPTS_PER_MINUTE = 2
    for _ in range(2):
        await finish(await guest.ask(await guest.begin()))
    response = await ask(guest, await guest.begin())
    assert problem_code(response, 429) == "too_many_prompts"
    assert 1 <= int(response["Retry-After"]) <= 60


async def test_a_repeated_prompt_is_answered_even_when_there_were_too_many(guest: Person, settings: Settings) -> None:
    settings.PROMPTS_PER_MINUTE = 1
    path, wanted = await guest.begin(), a_turn()
    await guest.post(f"{path}/turns", wanted)
    assert (await guest.post(f"{path}/turns", wanted)).status_code == 200


async def test_a_retry_is_a_prompt(guest: Person, finish: Any, settings: Settings) -> None:
    settings.PROMPTS_PER_MINUTE = 1
    turn = await guest.ask(await guest.begin())
    await finish(turn)
    response = await guest.post(f"/api/generations/{turn['generations'][0]['gen']}/retry", {"key": "k"})
    assert problem_code(response, 429) == "too_many_prompts"


async def test_an_owner_makes_so_many_conversations_a_minute(guest: Person, settings: Settings) -> None:
    settings.CONVERSATIONS_PER_MINUTE = 2
    answers = [await guest.post("/api/conversations") for _ in range(3)]
    assert problem_code(answers[-1], 429) == "too_many_conversations"
    assert await Conversation.objects.acount() == 2


async def test_deleting_makes_no_room_for_more_conversations(guest: Person, settings: Settings) -> None:
    settings.CONVERSATIONS_PER_MINUTE = 1
    await guest.send("delete", await guest.begin())
    assert problem_code(await guest.post("/api/conversations"), 429) == "too_many_conversations"


async def test_a_minute_later_there_is_room_again(guest: Person, settings: Settings) -> None:
    settings.CONVERSATIONS_PER_MINUTE = 1
    await guest.begin()
    (key,) = await web().redis.keys("sidestream:spent:conversations:*")
    ((word, at),) = await web().redis.zrange(key, 0, -1, withscores=True)
    await web().redis.zadd(key, {word: at - 60_001})
    assert (await guest.post("/api/conversations")).status_code == 201


async def test_zero_means_any_number(guest: Person, settings: Settings) -> None:
    settings.CONVERSATIONS_PER_MINUTE = 0
    answers = [await guest.post("/api/conversations") for _ in range(25)]
    assert {answer.status_code for answer in answers} == {201}


# Live connections, over several web processes


@pytest.fixture
async def two_processes(site: None, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Any:
    # However slow the machine is, these count with Redis. Without it another rule holds, which has its own test.
    monkeypatch.setattr("chatapp.streams.TIMEOUT_S", 60)
    clients = [connect(settings.REDIS_URL) for _ in range(2)]
    yield [Streams(client) for client in clients]
    for client in clients:
        await client.aclose()


async def refused(streams: Streams, owner: Owner) -> bool:
    try:
        (await streams.open(owner)).close()
    except Problem as exc:
        return exc.code == "too_many_streams"
    return False


async def test_connections_are_counted_over_all_processes(two_processes: list[Streams], settings: Settings) -> None:
    settings.MAX_STREAMS = 3
    one, two = two_processes
    held = [await one.open(ALICE), await one.open(ALICE), await two.open(ALICE)]
    assert await refused(one, ALICE)
    assert await refused(two, ALICE)
    assert not await refused(two, BOB)
    del held


async def test_of_connections_at_once_only_so_many_are_taken(two_processes: list[Streams], settings: Settings) -> None:
    settings.MAX_STREAMS = 3
    made = [streams.open(ALICE) for _ in range(4) for streams in two_processes]
    opened = await asyncio.gather(*made, return_exceptions=True)
    assert sum(not isinstance(one, Exception) for one in opened) <= 3


async def test_the_order_in_which_calls_arrive_does_not_matter(
    two_processes: list[Streams], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call takes a connection of its own to Redis, so the later may come first."""
    settings.MAX_STREAMS = 2
    one, two = two_processes
    later, second_came = one._keep, asyncio.Event()

    async def first_waits(*args: Any) -> Any:
        monkeypatch.setattr(one, "_keep", second_comes)
        await second_came.wait()
        return await later(*args)

    async def second_comes(*args: Any) -> Any:
        told = await later(*args)
        second_came.set()
        return told

    monkeypatch.setattr(one, "_keep", first_waits)
    held = await asyncio.gather(one.open(ALICE), one.open(ALICE))
    assert await refused(two, ALICE)
    del held


async def test_while_redis_says_nothing_others_have_what_they_had(
    two_processes: list[Streams], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MAX_STREAMS = 3
    one, two = two_processes
    held = [await two.open(ALICE), await one.open(ALICE)]
    monkeypatch.setattr("chatapp.streams.TIMEOUT_S", 0)
    held.append(await one.open(ALICE))
    assert await refused(one, ALICE)
    assert not await refused(one, BOB)
    del held


async def test_a_redis_that_lost_its_data_is_told_again(
    two_processes: list[Streams], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MAX_STREAMS = 1
    one, two = two_processes
    held = await one.open(ALICE)
    await web().redis.flushall()
    monkeypatch.setattr("chatapp.streams.BEAT_S", 0.01)
    running = asyncio.create_task(one.run())
    while not await refused(two, ALICE):
        await asyncio.sleep(0.005)
    running.cancel()
    held.close()


async def test_a_closed_connection_makes_room_in_other_processes(
    two_processes: list[Streams], settings: Settings
) -> None:
    settings.MAX_STREAMS = 1
    one, two = two_processes
    running = asyncio.create_task(one.run())
    (await one.open(ALICE)).close()
    while await refused(two, ALICE):
        await asyncio.sleep(0.005)
    running.cancel()


async def test_a_process_that_goes_takes_its_connections_along(
    two_processes: list[Streams], settings: Settings
) -> None:
    settings.MAX_STREAMS = 1
    one, two = two_processes
    held = await one.open(ALICE)
    await one.forget()
    assert not await refused(two, ALICE)
    held.close()


async def test_the_connections_of_a_dead_process_are_forgotten(
    two_processes: list[Streams], settings: Settings
) -> None:
    settings.MAX_STREAMS = 1
    key = f"sidestream:connections:{ALICE.key}"
    await web().redis.zadd(key, {"of a dead process": 1_700_000_000_000})
    assert not await refused(two_processes[0], ALICE)


# Places


async def test_those_who_wait_know_their_place(guest: Person, alice: Person) -> None:
    first = await guest.ask(await guest.begin(), "Hello", "echo", "warm")
    second = await alice.ask(await alice.begin())
    assert [one["place"] for one in first["generations"]] == [1, 2]
    assert second["generations"][0]["place"] == 2  # Before the other's second.


async def test_a_place_moves_up(guest: Person, alice: Person) -> None:
    first = await guest.ask(await guest.begin())
    path = await alice.begin()
    gen = (await alice.ask(path))["generations"][0]["gen"]
    await guest.post(f"/api/generations/{first['generations'][0]['gen']}/cancel")
    assert (await alice.get(f"/api/generations/{gen}")).json()["place"] == 1
    assert (await alice.sync(path))["turns"][0]["generations"][0]["place"] == 1


async def test_what_runs_or_ended_has_no_place(guest: Person, running: Any, finish: Any) -> None:
    gen = await running(guest)
    assert (await guest.get(f"/api/generations/{gen}")).json()["place"] is None
    turn = await guest.ask(await guest.begin())
    await finish(turn)
    ended = turn["generations"][0]["gen"]
    assert (await guest.get(f"/api/generations/{ended}")).json()["place"] is None
