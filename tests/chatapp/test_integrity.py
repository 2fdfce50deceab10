"""Rows and their archived events: whether they agree is found out, whatever was changed."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command
from hypothesis import given
from hypothesis import strategies as st

from chatapp.integrity import faults_of
from chatapp.models import EventArchive, Generation
from chatapp.rows import columns_of
from chatapp.store import DjangoStore
from chatapp.wiring import offer
from streaming.events import Cancelled, Start, TextDelta
from tests.chatapp.making import a_whole_answer, outcome_of
from tests.chatapp.people import Person

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


def ended(text: str = "Good **morning**") -> tuple[Generation, EventArchive]:
    gen = str(uuid4())
    outcome = a_whole_answer(gen, text=text)
    row = Generation(pk=gen, attempt=1, **columns_of(outcome.snapshot))
    return row, EventArchive(generation_id=gen, **EventArchive.columns(outcome.events))


def archived(events: list[dict[str, Any]], **changes: Any) -> EventArchive:
    lines = "\n".join(json.dumps(event) for event in events)
    return EventArchive(**{**EventArchive.columns(lines), **changes})


def events_of(archive: EventArchive) -> list[dict[str, Any]]:
    return [json.loads(line) for line in archive.events().split("\n")]


@given(texts)
def test_what_was_written_together_agrees(text: str) -> None:
    assert faults_of(*ended(text)) == []


@given(texts, texts)
def test_a_changed_text_is_found(text: str, other: str) -> None:
    row, archive = ended(text)
    row.text = other
    assert bool(faults_of(row, archive)) == (text != other)


@given(texts, st.data())
def test_a_missing_event_is_found(text: str, data: st.DataObject) -> None:
    row, archive = ended(text)
    events = events_of(archive)
    del events[data.draw(st.integers(0, len(events) - 1))]
    assert faults_of(row, archived(events)) != []


def test_a_missing_archive_is_found() -> None:
    row, _ = ended()
    assert faults_of(row, None) == ["its events are not archived"]


def test_an_archive_that_cannot_be_unpacked_is_found() -> None:
    row, archive = ended()
    archive.body = b"x" + bytes(archive.body)
    assert faults_of(row, archive) == ["its archived events cannot be read"]


def test_a_wrong_count_is_found() -> None:
    row, archive = ended()
    archive.count = 7
    assert faults_of(row, archive) == ["7 events were archived, and 3 are there"]


def test_a_wrong_digest_is_found() -> None:
    row, archive = ended()
    archive.sha256 = "0" * 64
    assert faults_of(row, archive) == ["the digest of its archived events differs"]


def test_a_second_terminal_event_is_found() -> None:
    row, archive = ended()
    *before, done = events_of(archive)
    events = [*before, done, {**done, "seq": done["seq"] + 1}]
    assert faults_of(row, archived(events)) == ["its events do not end with the one terminal event"]


def test_a_terminal_event_that_tells_of_another_text_is_found() -> None:
    row, archive = ended()
    events = events_of(archive)
    events[-1]["text_sha256"] = "0" * 64
    assert faults_of(row, archived(events)) == ["its terminal event tells of another text"]


# manage.py verify


def verify() -> tuple[int, str]:
    """Run the command; give its exit code and what it said."""
    said = StringIO()
    try:
        call_command("verify", stdout=said)
    except SystemExit as exc:
        return int(str(exc.code)), said.getvalue()
    return 0, said.getvalue()


async def two_ended(person: Person) -> list[str]:
    gens = [one["gen"] for one in (await person.ask(await person.begin(), "Hi", "echo", "warm"))["generations"]]
    store = DjangoStore(offer)
    await store.finish(gens[0], 1, a_whole_answer(gens[0]))
    cut = outcome_of(gens[1], 1, Start("warm", "p"), TextDelta("Goo"), Cancelled("user", "closed", 5, 3))
    await store.finish(gens[1], 1, cut)
    return gens


@pytest.mark.django_db(transaction=True)
async def test_verify_finds_nothing_where_all_agrees(guest: Person) -> None:
    await two_ended(guest)
    assert await sync_to_async(verify)() == (0, "2 ended answers looked at, 0 with faults\n")


@pytest.mark.django_db(transaction=True)
async def test_verify_names_what_does_not_agree(guest: Person) -> None:
    gens = await two_ended(guest)
    await Generation.objects.filter(pk=gens[0]).aupdate(text="Something else!")
    code, said = await sync_to_async(verify)()
    assert code == 1
    assert said.startswith(f"generation {gens[0]}: the length of its text differs")
    assert gens[1] not in said
