"""Export: whole answers with their evidence; what is not whole only when asked for, and marked."""

from __future__ import annotations

import csv
import re
from io import StringIO
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.export import file_stem
from chatapp.models import EventArchive, Generation
from chatapp.store import DjangoStore
from chatapp.wiring import offer
from streaming.events import Cancelled, Error, Start, TextDelta, Usage
from streaming.store import Outcome
from tests.chatapp.making import a_whole_answer, outcome_of
from tests.chatapp.people import Person, problem_code

WHOLE = (Start("echo", "p"), TextDelta("Good **morning**"))
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]


@pytest.fixture
async def exported(guest: Person) -> tuple[Person, str, list[str]]:
    """One turn with a whole answer, a stopped one and one that waits; give who, where and the generations."""
    path = await guest.begin()
    turn = await guest.ask(path, "Greet me\n# twice", "echo", "warm", "endless")
    gens = [one["gen"] for one in turn["generations"]]
    params = {"temperature": 1.5}
    bodies = (Start("warm", "p", params), TextDelta("Goo"), Usage("upstream", 3, 2), Cancelled("guest", "closed", 5, 3))
    await end_as(gens[0], a_whole_answer(gens[0]))
    await end_as(gens[1], outcome_of(gens[1], 1, *bodies))
    return guest, path, gens


async def end_as(gen: str, outcome: Outcome) -> None:
    store = DjangoStore(offer)
    assert await store.begin(gen, 1)
    assert await store.finish(gen, 1, outcome)


async def document(person: Person, path: str, query: str = "") -> dict[str, Any]:
    response = await person.get(f"{path}/export?format=json{query}")
    assert response.status_code == 200, response.content
    told: dict[str, Any] = response.json()
    return told


async def answers(person: Person, path: str, query: str = "") -> dict[str, dict[str, Any]]:
    (turn,) = (await document(person, path, query))["turns"]
    return {answer["id"]: answer for answer in turn["answers"]}


async def markdown(person: Person, path: str, query: str = "") -> str:
    response = await person.get(f"{path}/export?format=markdown{query}")
    text: str = response.content.decode()
    return text


async def test_only_whole_answers_are_exported(exported: Any) -> None:
    person, path, gens = exported
    assert [(gen, one["whole"]) for gen, one in (await answers(person, path)).items()] == [(gens[0], True)]


async def test_what_is_left_out_is_named_with_the_reason(exported: Any) -> None:
    person, path, gens = exported
    left_out = {one["id"]: one["faults"] for one in (await document(person, path))["left_out"]}
    assert left_out == {gens[1]: ["stopped before its end"], gens[2]: ["still being written"]}


async def test_partial_answers_come_when_asked_for_and_are_marked(exported: Any) -> None:
    person, path, gens = exported
    partial = (await answers(person, path, "&partial=1"))[gens[1]]
    assert (partial["whole"], partial["faults"], partial["text"]) == (False, ["stopped before its end"], "Goo")
    assert partial["usage"] == {"source": "upstream", "input": 3, "output": 2}


async def test_what_is_still_being_written_is_never_exported(exported: Any) -> None:
    person, path, gens = exported
    assert gens[2] not in await answers(person, path, "&partial=1")


async def test_an_answer_comes_with_what_made_it(exported: Any) -> None:
    person, path, gens = exported
    answer = (await answers(person, path))[gens[0]]
    row = await Generation.objects.aget(pk=gens[0])
    assert (answer["text"], answer["text_sha256"], answer["text_length"]) == (row.text, row.text_sha256, 16)
    assert (answer["model"], answer["finish"], answer["timings"]) == ("echo", "stop", {"ended_at": 5})


async def test_an_answer_whose_archive_does_not_agree_is_left_out(exported: Any) -> None:
    person, path, gens = exported
    await Generation.objects.filter(pk=gens[0]).aupdate(text="Good **evening**")
    left_out = {one["id"]: one["faults"] for one in (await document(person, path))["left_out"]}
    assert "the digest of its text differs" in left_out[gens[0]]


async def test_an_answer_that_is_called_completed_over_events_that_fail_is_left_out(exported: Any) -> None:
    person, path, gens = exported
    failed = outcome_of(gens[0], 1, *WHOLE, Error("idle_timeout", "It stopped.", True, False, 16, {"ended_at": 5}))
    await EventArchive.objects.filter(pk=gens[0]).aupdate(**EventArchive.columns(failed.events))
    left_out = {one["id"]: one["faults"] for one in (await document(person, path))["left_out"]}
    assert left_out[gens[0]][0] == "its state is 'completed', and by its events 'failed'"


async def test_a_continuation_is_not_whole(exported: Any) -> None:
    person, path, gens = exported
    response = await person.post(f"/api/generations/{gens[1]}/continue", {"key": "k"})
    new = response.json()["generation"]["gen"]
    await end_as(new, a_whole_answer(new))
    assert new not in await answers(person, path)
    assert (await answers(person, path, "&partial=1"))[new]["continues"] == gens[1]


async def test_markdown_quotes_the_prompt_and_names_the_model(exported: Any) -> None:
    person, path, _ = exported
    text = await markdown(person, path)
    assert "> Greet me\n> # twice\n\n### Echo\n\n> Good **morning**\n\n*answer 1 · model echo · finish stop" in text
    assert "Goo\n" not in text


async def test_markdown_marks_partial_answers(exported: Any) -> None:
    person, path, _ = exported
    text = await markdown(person, path, "&partial=1")
    assert "### Warm echo (temperature 1.5)\n\n**Partial: stopped before its end.**\n\n> Goo\n" in text


async def test_panes_with_one_model_are_told_apart(guest: Person, finish: Any) -> None:
    path = await guest.begin()
    await finish(await guest.ask(path, "Hello", "echo", "echo"))
    headings = re.findall(r"^### (.+)$", await markdown(guest, path), re.MULTILINE)
    assert headings == ["Echo (pane 1)", "Echo (pane 2)"]


async def rows(person: Person, path: str, query: str = "") -> list[dict[str, str]]:
    response = await person.get(f"{path}/export?format=csv{query}")
    assert response.status_code == 200, response.content
    text = response.content.decode()
    assert text.startswith("\ufeff")
    return list(csv.DictReader(StringIO(text.removeprefix("\ufeff"), newline=""), strict=True))


async def test_csv_has_a_row_for_each_answer(exported: Any) -> None:
    person, path, _ = exported
    (whole,) = await rows(person, path)
    told = {name: whole[name] for name in ("turn", "pane", "model", "model_id", "state", "whole", "text", "finish")}
    assert told == {
        "turn": "1", "pane": "1", "model": "Echo", "model_id": "echo", "state": "completed", "whole": "yes",
        "text": "Good **morning**", "finish": "stop",
    }  # fmt: skip
    _, partial = await rows(person, path, "&partial=1")
    assert (partial["model"], partial["whole"], partial["why_not_whole"]) == (
        "Warm echo",
        "no",
        "stopped before its end",
    )
    assert (partial["input_tokens"], partial["output_tokens"], partial["text"]) == ("3", "2", "Goo")


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("How tides work", "How tides work"),
        ("a/b\\c: d?", "a b c d"),
        ("../../etc/passwd", "etc passwd"),
        ("CON", "conversation CON"),
        ("con.txt", "conversation con.txt"),
        ("console", "console"),
        ("...", "conversation"),
        ("gnp\u202efdp.exe", "gnpfdp.exe"),
        ('"; filename=evil.exe', "; filename=evil.exe"),
        ("x" * 400, "x" * 150),
        ("é" * 400, "é" * 75),
    ],
)
def test_a_file_is_called_by_the_title_as_far_as_every_system_allows(title: str, name: str) -> None:
    assert file_stem(title) == name


@given(st.text(max_size=300))
def test_any_title_gives_a_name_that_stays_in_its_folder(title: str) -> None:
    name = file_stem(title)
    assert 0 < len(name.encode()) <= 170
    assert not set(name) & set('/\\:*?"<>|\0\r\n')
    assert name[0] not in " .-"
    assert name[-1] not in " ."


async def test_a_title_of_any_script_names_the_file(guest: Person) -> None:
    path = await guest.begin()
    await guest.send("patch", path, {"title": "Wie geht’s, 世界?"})
    response = await guest.get(f"{path}/export?format=csv")
    assert response["Content-Disposition"].endswith(f"filename*=utf-8''{quote('Wie geht’s, 世界.csv')}")


@pytest.mark.parametrize(
    ("form", "content_type"), [("json", "application/json"), ("markdown", "text/markdown"), ("csv", "text/csv")]
)
async def test_a_browser_keeps_it_as_a_file(exported: Any, form: str, content_type: str) -> None:
    person, path, _ = exported
    response = await person.get(f"{path}/export?format={form}")
    assert response["Content-Disposition"].startswith("attachment; filename=")
    assert response["Content-Type"].startswith(content_type)
    assert response["X-Content-Type-Options"] == "nosniff"


async def test_an_unknown_format_is_refused(guest: Person) -> None:
    assert problem_code(await guest.get(f"{await guest.begin()}/export?format=pdf"), 400) == "invalid_field"
