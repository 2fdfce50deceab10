"""Retry and continue: another answer to the same turn, never mixed with the one before."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from chatapp.history import GO_ON
from chatapp.models import Generation
from chatapp.store import DjangoStore
from chatapp.wiring import Worker, offer
from streaming.events import Cancelled, Done, Start, TextDelta
from streaming.store import Outcome
from tests.chatapp.listening import over_ndjson
from tests.chatapp.making import a_whole_answer, outcome_of
from tests.chatapp.people import Person, a_turn, problem_code

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]

CUT = (Start("echo", "p"), TextDelta("Once upon"))


async def end(gen: str, outcome: Outcome) -> None:
    assert await DjangoStore(offer).finish(gen, 1, outcome)


async def asked(person: Person, *models: str) -> tuple[str, dict[str, Any]]:
    """Ask; give the conversation's path and the turn."""
    path = await person.begin()
    return path, await person.ask(path, "Tell me a story", *models)


async def stopped(person: Person, text: str = "Once upon") -> tuple[str, str]:
    """Ask, and stop the answer in its middle; give the conversation's path and the generation."""
    path, turn = await asked(person)
    gen = turn["generations"][0]["gen"]
    deltas = (TextDelta(text),) if text else ()
    await end(gen, outcome_of(gen, 1, Start("echo", "p"), *deltas, Cancelled("guest", "closed", 5, len(text))))
    return path, gen


async def again(person: Person, gen: str, kind: str = "retry", key: str | None = None) -> Any:
    return await person.post(f"/api/generations/{gen}/{kind}", {"key": key or str(uuid.uuid4())})


async def made(person: Person, gen: str, kind: str = "retry") -> dict[str, Any]:
    response = await again(person, gen, kind)
    assert response.status_code == 201, response.content
    generation: dict[str, Any] = response.json()["generation"]
    return generation


async def told(gen: str) -> list[tuple[str, str]]:
    """Give what the model would be asked."""
    job = await DjangoStore(offer).job(gen)
    assert job is not None
    return [(message.role, message.content) for message in job.messages]


# What is made


async def test_a_retry_is_a_new_generation_of_the_same_turn_and_pane(guest: Person) -> None:
    path, gen = await stopped(guest)
    new = await made(guest, gen)
    (turn,) = (await guest.sync(path))["turns"]
    old, retried = turn["generations"]
    assert (old["gen"], retried) == (gen, new)
    assert (new["pane"], new["model"], new["params"]) == (old["pane"], old["model"], old["params"])
    assert (new["state"], new["number"], new["continues"]) == ("queued", 2, None)


async def test_a_continuation_says_what_it_continues(guest: Person) -> None:
    _, gen = await stopped(guest)
    assert (await made(guest, gen, "continue"))["continues"] == gen


@pytest.mark.parametrize("kind", ["retry", "continue"])
async def test_another_answer_is_dispatched(guest: Person, queued: Any, kind: str) -> None:
    _, gen = await stopped(guest)
    new = await made(guest, gen, kind)
    assert new["gen"] in queued()


@pytest.mark.parametrize("kind", ["retry", "continue"])
async def test_the_same_key_makes_one_answer(guest: Person, kind: str) -> None:
    _, gen = await stopped(guest)
    answers = await asyncio.gather(*(again(guest, gen, kind, "k1") for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [201]
    assert len({answer.json()["generation"]["gen"] for answer in answers}) == 1


async def test_of_different_requests_at_once_one_is_made(guest: Person) -> None:
    _, gen = await stopped(guest)
    answers = await asyncio.gather(*(again(guest, gen) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 4


async def test_another_answer_is_told_to_other_tabs_by_itself(guest: Person) -> None:
    path, gen = await stopped(guest)
    cursor = (await guest.sync(path))["cursor"]
    new = await made(guest, gen)
    async with over_ndjson(guest, path, cursor) as frames:
        (notice,) = (await anext(frames))["events"]
    assert (notice["type"], notice["turn"]["generations"]) == ("turn", [new])
    assert notice["turn"]["prompt"] == "Tell me a story"


async def test_another_pane_may_still_be_writing(guest: Person) -> None:
    _, turn = await asked(guest, "echo", "warm")
    gen = turn["generations"][0]["gen"]
    await end(gen, a_whole_answer(gen))
    assert (await again(guest, gen)).status_code == 201


async def test_an_answer_without_text_is_retried(guest: Person) -> None:
    _, gen = await stopped(guest, "")
    assert (await again(guest, gen)).status_code == 201


async def test_a_turn_is_added_after_a_pane_that_was_left_out_was_asked_again(guest: Person, finish: Any) -> None:
    path, wanted = await guest.begin(), a_turn("echo", "warm")
    first = (await guest.post(f"{path}/turns", wanted)).json()["turn"]
    await finish(first)
    alone = {"prompt": "And then?", "panes": wanted["panes"][:1]}
    await finish((await guest.post(f"{path}/turns", {**alone, "key": "second"})).json()["turn"])
    again = await made(guest, first["generations"][1]["gen"])
    await end(again["gen"], a_whole_answer(again["gen"]))
    assert (await guest.post(f"{path}/turns", {**alone, "key": "third"})).status_code == 201


# What is refused


@pytest.mark.parametrize("kind", ["retry", "continue"])
async def test_what_is_being_written_is_not_answered_again(guest: Person, running: Any, kind: str) -> None:
    assert problem_code(await again(guest, await running(guest), kind), 409) == "answer_running"


async def test_a_pane_writes_one_answer_at_a_time(guest: Person) -> None:
    _, gen = await stopped(guest)
    await made(guest, gen)
    assert problem_code(await again(guest, gen), 409) == "answer_running"


async def test_an_earlier_turn_is_not_answered_again(guest: Person) -> None:
    path, gen = await stopped(guest)
    pane = (await guest.sync(path))["panes"][0]["id"]
    later = {"prompt": "And then?", "panes": [{"id": pane, "model": "echo"}], "key": "k"}
    assert (await guest.post(f"{path}/turns", later)).status_code == 201
    assert problem_code(await again(guest, gen), 409) == "turn_passed"


async def test_nothing_cannot_be_continued(guest: Person) -> None:
    _, gen = await stopped(guest, "")
    assert problem_code(await again(guest, gen, "continue"), 409) == "nothing_to_continue"


async def test_a_whole_answer_is_not_continued(guest: Person) -> None:
    _, turn = await asked(guest)
    gen = turn["generations"][0]["gen"]
    await end(gen, a_whole_answer(gen))
    assert problem_code(await again(guest, gen, "continue"), 409) == "answer_whole"


async def test_an_answer_that_was_cut_by_its_length_is_continued(guest: Person) -> None:
    _, turn = await asked(guest)
    gen = turn["generations"][0]["gen"]
    await end(gen, outcome_of(gen, 1, *CUT, Done("length", "0" * 64, 9)))
    assert (await again(guest, gen, "continue")).status_code == 201


async def test_a_model_that_is_offered_no_more_is_not_asked_again(guest: Person) -> None:
    _, gen = await stopped(guest)
    await Generation.objects.aupdate(model="keyless")
    assert problem_code(await again(guest, gen), 400) == "model_unavailable"


@pytest.mark.parametrize("key", [7, "", "x" * 65, "a b"])
async def test_a_malformed_key_is_refused(guest: Person, key: Any) -> None:
    _, gen = await stopped(guest)
    response = await guest.post(f"/api/generations/{gen}/retry", {"key": key})
    assert problem_code(response, 400) == "invalid_field"


# What the model is told


async def test_a_retry_is_told_nothing_of_the_answer_before(guest: Person) -> None:
    _, gen = await stopped(guest)
    assert await told((await made(guest, gen))["gen"]) == [("user", "Tell me a story")]


async def test_a_continuation_is_given_the_old_text(guest: Person) -> None:
    _, gen = await stopped(guest)
    assert await told((await made(guest, gen, "continue"))["gen"]) == [
        ("user", "Tell me a story"),
        ("assistant", "Once upon"),
        ("user", GO_ON),
    ]


async def test_a_continuation_of_a_continuation_is_given_both_texts(guest: Person) -> None:
    _, gen = await stopped(guest)
    second = (await made(guest, gen, "continue"))["gen"]
    await end(
        second, outcome_of(second, 1, Start("echo", "p"), TextDelta(" a time"), Cancelled("guest", "closed", 5, 7))
    )
    assert (await told((await made(guest, second, "continue"))["gen"]))[1:] == [
        ("assistant", "Once upon"),
        ("user", GO_ON),
        ("assistant", " a time"),
        ("user", GO_ON),
    ]


async def later(person: Person, path: str) -> str:
    """Ask the conversation's first pane something more; give the generation."""
    pane = (await person.sync(path))["panes"][0]["id"]
    wanted = {"prompt": "And then?", "panes": [{"id": pane, "model": "echo"}], "key": "later"}
    gen: str = (await person.post(f"{path}/turns", wanted)).json()["turn"]["generations"][0]["gen"]
    return gen


async def test_history_holds_the_newest_answer(guest: Person) -> None:
    path, gen = await stopped(guest)
    second = (await made(guest, gen))["gen"]
    await end(second, a_whole_answer(second, text="A new story"))
    assert (await told(await later(guest, path)))[1] == ("assistant", "A new story")


async def test_history_skips_a_retry_that_said_nothing(guest: Person) -> None:
    path, turn = await asked(guest)
    gen = turn["generations"][0]["gen"]
    await end(gen, a_whole_answer(gen, text="The first story"))
    second = (await made(guest, gen))["gen"]
    await end(second, outcome_of(second, 1, Start("echo", "p"), Cancelled("guest", "closed", 5, 0)))
    assert (await told(await later(guest, path)))[1] == ("assistant", "The first story")


async def test_history_tells_a_continued_answer_as_it_came_about(guest: Person) -> None:
    path, gen = await stopped(guest)
    second = (await made(guest, gen, "continue"))["gen"]
    await end(second, a_whole_answer(second, text=" a time."))
    assert await told(await later(guest, path)) == [
        ("user", "Tell me a story"),
        ("assistant", "Once upon"),
        ("user", GO_ON),
        ("assistant", " a time."),
        ("user", "And then?"),
    ]


async def test_the_texts_of_two_answers_stay_apart(guest: Person, worker: Worker) -> None:
    path, gen = await stopped(guest)
    second = (await made(guest, gen, "continue"))["gen"]
    await worker.runtime.drive(second)
    (turn,) = (await guest.sync(path))["turns"]
    assert [one["text"] for one in turn["generations"]] == ["Once upon", GO_ON]
