"""The store's fences: who may begin and end a generation, and what is kept of it."""

from __future__ import annotations

import asyncio
import json
import uuid
from dataclasses import replace
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.utils.timezone import now

from chatapp.history import CUT_MARK
from chatapp.models import EventArchive, Generation
from chatapp.store import DjangoStore
from streaming.events import Cancelled, Error, Start, TextDelta
from streaming.lifecycle import State
from streaming.store import Job, Outcome
from tests.chatapp.making import a_conversation, a_generation, a_turn, a_whole_answer, outcome_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("database")]


class Instructions:
    """A catalogue in which every model has the same system prompt, and no known context."""

    def system(self, model: str) -> str:
        return f"You are {model}."

    def prompt_budget(self, model: str, max_tokens: int | None) -> int | None:
        return None


@pytest.fixture
def store() -> DjangoStore:
    return DjangoStore(Instructions)


@pytest.fixture
def gen() -> str:
    return str(a_generation(a_turn(a_conversation())).pk)


async def row(gen: str) -> Generation:
    return await Generation.objects.select_related("pane").aget(pk=gen)


async def job(store: DjangoStore, gen: str) -> Job:
    found = await store.job(gen)
    assert found is not None
    return found


def cancelled(gen: str, attempt: int) -> Outcome:
    return outcome_of(gen, attempt, Cancelled("user", "closed", 3, 0))


async def test_an_unknown_generation_has_no_job(store: DjangoStore) -> None:
    assert await store.job(str(uuid.uuid4())) is None


async def test_a_job_says_what_to_drive(store: DjangoStore, gen: str) -> None:
    found, known = await job(store, gen), await row(gen)
    assert (found.ref, found.state, found.attempt, found.pane) == (known.ref, State.QUEUED, 0, str(known.pane.uuid))


async def test_a_job_carries_system_prompt_and_prompt(store: DjangoStore, gen: str) -> None:
    assert [m.content for m in (await job(store, gen)).messages] == ["You are echo.", "Hello"]


async def test_the_first_attempt_begins(store: DjangoStore, gen: str) -> None:
    assert await store.begin(gen, 1)
    assert (await row(gen)).state == State.RUNNING


async def test_of_two_drivers_with_one_attempt_only_one_begins(store: DjangoStore, gen: str) -> None:
    assert sorted(await asyncio.gather(*(store.begin(gen, 1) for _ in range(4)))) == [False, False, False, True]


async def test_an_older_attempt_may_not_begin(store: DjangoStore, gen: str) -> None:
    await store.begin(gen, 2)
    assert not await store.begin(gen, 1)


async def test_nobody_begins_after_the_end(store: DjangoStore, gen: str) -> None:
    await store.finish(gen, 1, a_whole_answer(gen))
    assert not await store.begin(gen, 2)


async def test_the_end_keeps_text_and_state(store: DjangoStore, gen: str) -> None:
    assert await store.finish(gen, 1, a_whole_answer(gen, text="Good 🌞"))
    known = await row(gen)
    assert (known.text, known.text_length, known.state) == ("Good 🌞", 6, State.COMPLETED)


async def test_a_fenced_out_driver_ends_nothing(store: DjangoStore, gen: str) -> None:
    await store.begin(gen, 2)
    assert not await store.finish(gen, 1, a_whole_answer(gen))
    assert not await EventArchive.objects.aexists()


async def test_the_same_end_twice_changes_nothing(store: DjangoStore, gen: str) -> None:
    await store.finish(gen, 1, a_whole_answer(gen))
    before = await row(gen)
    assert await store.finish(gen, 1, a_whole_answer(gen))
    assert (await row(gen)).ended_at == before.ended_at


async def test_another_end_of_the_same_attempt_is_refused(store: DjangoStore, gen: str) -> None:
    await store.finish(gen, 1, a_whole_answer(gen))
    assert not await store.finish(gen, 1, cancelled(gen, 1))


async def test_the_end_of_a_newer_attempt_comes_too_late(store: DjangoStore, gen: str) -> None:
    await store.finish(gen, 1, a_whole_answer(gen))
    assert not await store.finish(gen, 2, cancelled(gen, 2))


async def test_the_end_of_a_deleted_generation_is_refused(store: DjangoStore) -> None:
    gen = str(uuid.uuid4())
    assert not await store.finish(gen, 1, a_whole_answer(gen))


async def test_of_many_ends_at_once_one_is_kept(store: DjangoStore, gen: str) -> None:
    ends = [a_whole_answer(gen, n, text=f"answer {n}") for n in range(1, 7)]
    won = await asyncio.gather(*(store.finish(gen, n, end) for n, end in enumerate(ends, start=1)))
    assert won.count(True) == 1


async def test_the_archive_gives_back_every_event(store: DjangoStore, gen: str) -> None:
    outcome = a_whole_answer(gen, text="a line\u2028another")
    await store.finish(gen, 1, outcome)
    archive = await EventArchive.objects.aget(pk=gen)
    assert archive.events() == outcome.events
    assert archive.count == 3


async def test_the_archive_is_small(store: DjangoStore, gen: str) -> None:
    outcome = a_whole_answer(gen, text="again and " * 5000)
    await store.finish(gen, 1, outcome)
    assert len((await EventArchive.objects.aget(pk=gen)).body) < len(outcome.events) / 20


async def test_the_committed_end_is_given_back_as_it_was(store: DjangoStore, gen: str) -> None:
    pane = str((await row(gen)).pane.uuid)
    outcome = outcome_of(
        gen, 1, Start("echo", pane), TextDelta("Good"), Cancelled("user", "closed", 3, 4, {"ended_at": 5})
    )
    await store.finish(gen, 1, outcome)
    assert await store.ended(gen) == outcome


async def test_a_live_generation_has_no_end(store: DjangoStore, gen: str) -> None:
    assert await store.ended(gen) is None


async def test_an_end_without_blocks_is_rendered_later(store: DjangoStore, gen: str) -> None:
    outcome = a_whole_answer(gen)
    unrendered = replace(outcome, snapshot=replace(outcome.snapshot, blocks=(), shown=0, rendered_seq=0))
    await store.finish(gen, 1, unrendered)
    assert (await row(gen)).render_version == 0


async def test_what_ended_long_ago_is_not_listed_as_live(store: DjangoStore, gen: str) -> None:
    ended = str((await sync_to_async(a_generation)(await a_turn_after(gen))).pk)
    await store.finish(ended, 1, a_whole_answer(ended))
    await Generation.objects.filter(pk=ended).aupdate(ended_at=now() - timedelta(minutes=3))
    assert [one.ref.gen for one in await store.live(120_000)] == [gen]
    assert [one.ref.gen for one in await store.live(240_000)] == [gen, ended]


async def test_what_ended_just_now_is_listed_with_its_end(store: DjangoStore, gen: str) -> None:
    await store.finish(gen, 1, a_whole_answer(gen))
    assert [one.state for one in await store.live(1_000)] == [State.COMPLETED]


async def test_live_generations_come_oldest_first(store: DjangoStore, gen: str) -> None:
    later = str((await sync_to_async(a_generation)(await a_turn_after(gen))).pk)
    assert [one.ref.gen for one in await store.live(1_000)] == [gen, later]


async def a_turn_after(gen: str, prompt: str = "And then?"):  # type: ignore[no-untyped-def]
    known = await Generation.objects.select_related("conversation").aget(pk=gen)
    return await sync_to_async(a_turn)(known.conversation, prompt)


async def next_job(store: DjangoStore, gen: str) -> list[str]:
    """Ask a further question in the same pane; give what its model is told."""
    following = await sync_to_async(a_generation)(await a_turn_after(gen))
    return [message.content for message in (await job(store, str(following.pk))).messages]


async def test_a_completed_answer_is_told_to_the_next_turn(store: DjangoStore, gen: str) -> None:
    await store.finish(gen, 1, a_whole_answer(gen, text="Hi!"))
    assert await next_job(store, gen) == ["You are echo.", "Hello", "Hi!", "And then?"]


async def test_a_stopped_answer_is_told_with_its_mark(store: DjangoStore, gen: str) -> None:
    stopped = outcome_of(gen, 1, Start("echo", "p"), TextDelta("Hi"), Cancelled("user", "closed", 3, 2))
    await store.finish(gen, 1, stopped)
    assert (await next_job(store, gen))[2] == f"Hi{CUT_MARK}"


async def test_a_turn_that_failed_without_a_word_is_not_told(store: DjangoStore, gen: str) -> None:
    await store.finish(gen, 1, outcome_of(gen, 1, Start("echo", "p"), Error("overloaded", "Busy.", True, False, 0)))
    assert await next_job(store, gen) == ["You are echo.", "And then?"]


async def test_another_panes_answers_are_not_told(store: DjangoStore, gen: str) -> None:
    await store.finish(gen, 1, a_whole_answer(gen))
    turn = await a_turn_after(gen)
    pane = await turn.conversation.panes.acreate(uuid=uuid.uuid4(), model="echo", position=1)
    other = await sync_to_async(a_generation)(turn, pane=pane)
    assert [m.content for m in (await job(store, str(other.pk))).messages] == ["You are echo.", "And then?"]


async def test_events_are_kept_one_a_line(store: DjangoStore, gen: str) -> None:
    await store.finish(gen, 1, a_whole_answer(gen))
    lines = (await EventArchive.objects.aget(pk=gen)).events().split("\n")
    assert [json.loads(line)["seq"] for line in lines] == [1, 2, 3]
