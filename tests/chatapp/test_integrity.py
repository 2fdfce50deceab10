"""Rows and their archived events: whether they agree is found out, whatever was changed."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.integrity import faults_of
from chatapp.models import EventArchive, Generation
from chatapp.rows import columns_of
from chatapp.wiring import web
from streaming import takeover
from streaming.events import (
    Body,
    Cancelled,
    Done,
    Error,
    ReasoningDelta,
    Start,
    Step,
    TextDelta,
    ToolComplete,
    ToolDelta,
    Usage,
)
from streaming.log.redis_format import append_keys
from streaming.store import Outcome
from tests.chatapp.conftest import say
from tests.chatapp.making import a_whole_answer, outcome_of
from tests.chatapp.people import Person

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)

WORK: list[Body] = [
    Start("echo", "p", {"top_p": 0.5}), ReasoningDelta("Hm"), TextDelta("Good"), ToolDelta("c", "{", "f"),
    ToolComplete("c", "f", "{}"), Step(1, "again"), TextDelta(" day"), Usage("upstream", 3, 2),
]  # fmt: skip
DONE = Done("stop", hashlib.sha256(b"Good day").hexdigest(), 8, {"ended_at": 5})
FAILED = Error("idle_timeout", "It stopped.", True, False, 8, {"ended_at": 5})
LOST = Error("driver_lost", "It went away.", True, False, 8, {"ended_at": 5})
STOPPED = Cancelled("user", "closed", 5, 8, {"ended_at": 5})


def row_of(outcome: Outcome, **columns: Any) -> Generation:
    columns = {"model": "echo", "attempt": 1, **columns_of(outcome.snapshot), **columns}
    return Generation(pk=outcome.snapshot.gen, **columns)


def archive_of(outcome: Outcome) -> EventArchive:
    return EventArchive(generation_id=outcome.snapshot.gen, **EventArchive.columns(outcome.events))


def ended(text: str = "Good **morning**") -> tuple[Generation, EventArchive]:
    outcome = a_whole_answer(str(uuid4()), text=text)
    return row_of(outcome), archive_of(outcome)


def worked(end: Body, *, gen: str = "") -> Outcome:
    """Give an answer that holds all that an answer may hold, and ends so."""
    return outcome_of(gen or str(uuid4()), 1, *WORK, end)


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


# What the row says beside its text


@pytest.mark.parametrize("end", [DONE, FAILED, LOST, STOPPED], ids=lambda end: end.type)
def test_every_end_agrees_with_its_own_events(end: Body) -> None:
    outcome = worked(end)
    assert faults_of(row_of(outcome, params={"top_p": 0.5}), archive_of(outcome)) == []


def test_what_ended_before_it_started_agrees() -> None:
    outcome = outcome_of(str(uuid4()), 1, Cancelled("user", "closed", 5, 0))
    assert faults_of(row_of(outcome, model="any", params={"top_p": 1}), archive_of(outcome)) == []


@pytest.mark.parametrize(
    ("end", "state", "differ"),
    [(FAILED, "failed", "error"), (LOST, "interrupted", "error"), (STOPPED, "cancelled", "cancel")],
)
def test_an_answer_that_is_called_completed_and_was_not_is_found(end: Body, state: str, differ: str) -> None:
    gen = str(uuid4())
    row = row_of(worked(DONE, gen=gen), params={"top_p": 0.5})
    assert faults_of(row, archive_of(worked(end, gen=gen))) == [
        f"its state is 'completed', and by its events '{state}'",
        "its finish is 'stop', and by its events ''",
        f"its events do not give its {differ}",
    ]


CHANGES: dict[str, tuple[Any, str]] = {
    "state": ("interrupted", "its state is 'interrupted', and by its events 'completed'"),
    "seq": (10, "its seq is 10, and by its events 9"),
    "attempt": (2, "its attempt is 2, and by its events 1"),
    "model": ("warm", "its model is 'warm', and by its events 'echo'"),
    "finish": ("length", "its finish is 'length', and by its events 'stop'"),
    "usage": (None, "its usage is None, and by its events {'source': 'upstream', 'input': 3, 'output': 2}"),
    "resumed": (1, "its resumed is 1, and by its events 0"),
    "reasoning": ("Hmm", "its events do not give its reasoning"),
    "tools": ([], "its events do not give its tools"),
    "steps": (["another"], "its events do not give its steps"),
    "params": ({}, "its events do not give its params"),
    "error": ({"code": "x"}, "its events do not give its error"),
    "cancel": ({"reason": "user"}, "its events do not give its cancel"),
    "timings": ({}, "its events do not give its timings"),
}


@pytest.mark.parametrize("column", CHANGES)
def test_whatever_the_row_says_otherwise_is_found_and_told_in_one_line(column: str) -> None:
    outcome = worked(DONE)
    value, fault = CHANGES[column]
    row = row_of(outcome, **{"params": {"top_p": 0.5}, column: value})
    assert faults_of(row, archive_of(outcome)) == [fault]


def test_the_events_of_another_answer_are_found() -> None:
    row = row_of(worked(DONE), params={"top_p": 0.5})
    assert faults_of(row, archive_of(worked(DONE))) == ["its archived events are of another answer"]


def test_events_that_may_not_follow_each_other_are_found() -> None:
    row, archive = ended()
    start, _, done = events_of(archive)
    (fault,) = faults_of(row, archived([start, {**start, "seq": 2}, {**done, "seq": 3}]))[-1:]
    assert fault.startswith("its events cannot be folded: ")


def test_an_event_of_no_known_kind_is_found() -> None:
    row, archive = ended()
    start, text, done = events_of(archive)
    assert faults_of(row, archived([start, {**text, "type": "thought"}, done])) == [
        "its archived events cannot be read"
    ]


def test_fewer_events_than_its_seq_are_no_excuse_for_a_completed_answer() -> None:
    outcome = worked(DONE)
    row = row_of(outcome, params={"top_p": 0.5}, seq=50)
    events = [{**event, "at": round(row.queued_at.timestamp() * 1000)} for event in events_of(archive_of(outcome))]
    assert faults_of(row, archived(events)) == ["its seq is 50, and by its events 9"]


@pytest.fixture
def told_again(guest: Person, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Awaitable[Generation]]:
    """Lose an answer's driver and the entries of its log, so that the snapshot is all that can be archived."""
    monkeypatch.setattr(takeover, "LOOK_AGAIN_S", 0.0)

    async def lose() -> Generation:
        path = await guest.begin()
        gen = (await guest.ask(path))["generations"][0]["gen"]
        ref = (await Generation.objects.aget(pk=gen)).ref
        assert await web().store.begin(gen, 1)
        await say(gen, Start("echo", "p"), *WORK[1:3], TextDelta(" day"), *WORK[3:6])
        log, meta = append_keys(ref)[:2]
        await web().redis.delete(log)
        await web().redis.hset(meta, "lease", 1)  # type: ignore[misc]
        await guest.sync(path)
        while web().lookout._looking:
            await asyncio.sleep(0.01)
        return await Generation.objects.select_related("archive").aget(pk=gen)

    return lose


@pytest.mark.django_db(transaction=True)
async def test_what_was_told_again_from_a_snapshot_agrees(told_again: Any) -> None:
    row = await told_again()
    assert (row.state, row.text, row.seq) == ("interrupted", "Good day", 9)
    assert row.archive.count < row.seq
    assert faults_of(row, row.archive) == []


@pytest.mark.django_db(transaction=True)
async def test_what_was_told_again_and_changed_then_is_found(told_again: Any) -> None:
    row = await told_again()
    row.state, row.reasoning = "completed", "Hmm"
    assert faults_of(row, row.archive) == [
        "its state is 'completed', and by its events 'interrupted'",
        f"its seq is 9, and by its events {row.archive.count}",
        "its events do not give its reasoning",
    ]
