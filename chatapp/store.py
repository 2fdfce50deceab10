"""The core's Store on the ORM. Each claim is a conditional UPDATE; the number of rows says who won."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import NamedTuple, Protocol

from django.db import transaction
from django.db.models import Q
from django.utils.timezone import now

from chatapp.database import in_database
from chatapp.history import Exchange, messages
from chatapp.models import NOT_ENDED, EventArchive, Generation
from chatapp.models.conversation import epoch_ms
from chatapp.rows import columns_of, snapshot_of
from streaming.lifecycle import LIVE, State
from streaming.log.ports import Ref
from streaming.store import Job, Live, Outcome

_LIVE = sorted(LIVE)
# What a job is made of. Without the answer's own columns, which are large and empty.
_JOB = (
    "number", "continues", "model", "params", "state", "attempt", "queued_at", "turn__index", "turn__prompt",
    "pane__uuid", "conversation__user", "conversation__guest",
)  # fmt: skip


class Instructions(Protocol):
    """What the catalogue says of a model beyond its address."""

    def system(self, model: str) -> str: ...

    def prompt_budget(self, model: str, max_tokens: int | None) -> int | None:
        """How many tokens the messages may have; None when the model's context is not known."""
        ...


class DjangoStore:
    """`instructions` is asked for the catalogue in force each time a job is loaded."""

    def __init__(self, instructions: Callable[[], Instructions]) -> None:
        self._instructions = instructions

    async def job(self, gen: str) -> Job | None:
        return await in_database(self._job, gen)

    async def begin(self, gen: str, attempt: int) -> bool:
        return await in_database(_begin, gen, attempt)

    async def finish(self, gen: str, attempt: int, outcome: Outcome) -> bool:
        return await in_database(_finish, gen, attempt, outcome)

    async def ended(self, gen: str) -> Outcome | None:
        return await in_database(_ended, gen)

    async def live(self, ended_within_ms: int) -> list[Live]:
        return await in_database(_live, ended_within_ms)

    def _job(self, gen: str) -> Job | None:
        try:
            row = Generation.objects.select_related("turn", "pane", "conversation").only(*_JOB).get(pk=gen)
        except Generation.DoesNotExist:
            return None
        instructions = self._instructions()
        budget = instructions.prompt_budget(row.model, row.params.get("max_tokens"))
        history = messages(
            instructions.system(row.model), _exchanges(row), row.turn.prompt, budget, to_continue=_to_continue(row)
        )
        return Job(
            ref=row.ref, state=State(row.state), attempt=row.attempt, pane=str(row.pane.uuid), model=row.model,
            params=row.params, messages=history, queued_at=epoch_ms(row.queued_at),
            owner=str(row.conversation.user_id or row.conversation.guest),
        )  # fmt: skip


def _exchanges(row: Generation) -> list[Exchange]:
    """Read a pane's earlier turns, oldest first. Of several answers to one turn the newest that has text counts."""
    if row.turn.index == 0:
        return []
    earlier = Generation.objects.filter(pane_id=row.pane_id, turn__index__lt=row.turn.index).exclude(state__in=_LIVE)
    columns = ("pk", "turn_id", "turn__prompt", "text", "state", "continues_id")
    rows = list(earlier.order_by("turn__index", "number").values_list(*columns))
    known = {pk: _Answer(text, continues) for pk, _, _, text, _, continues in rows}
    newest: dict[uuid.UUID, Exchange] = {}
    for pk, turn, prompt, text, state, _ in rows:
        if text or turn not in newest:
            answer, *continued = _chain(pk, known)
            newest[turn] = Exchange(prompt, answer, state == State.COMPLETED, tuple(continued))
    return list(newest.values())


def _to_continue(row: Generation) -> list[str]:
    """Give the texts that a continuation goes on from, oldest first."""
    if row.continues_id is None:
        return []
    siblings = Generation.objects.filter(turn_id=row.turn_id, pane_id=row.pane_id)
    known = {pk: _Answer(text, continues) for pk, text, continues in siblings.values_list("pk", "text", "continues_id")}
    return _chain(row.continues_id, known)


class _Answer(NamedTuple):
    text: str
    continues: uuid.UUID | None


def _chain(pk: uuid.UUID, known: Mapping[uuid.UUID, _Answer]) -> list[str]:
    """Give an answer's text, and before it the texts of those that it continues."""
    texts: list[str] = []
    at: uuid.UUID | None = pk
    while at is not None:
        texts.insert(0, known[at].text)
        at = known[at].continues
    return texts


def _begin(gen: str, attempt: int) -> bool:
    mine = Generation.objects.filter(pk=gen, attempt__lt=attempt, state__in=_LIVE)
    return bool(mine.update(attempt=attempt, state=State.RUNNING))


def _finish(gen: str, attempt: int, outcome: Outcome) -> bool:
    with transaction.atomic():
        mine = Generation.objects.filter(pk=gen, attempt__lte=attempt, state__in=_LIVE)
        if mine.update(attempt=attempt, ended_at=now(), **columns_of(outcome.snapshot)):
            EventArchive.objects.create(generation_id=gen, **EventArchive.columns(outcome.events))
            return True
    return Generation.objects.filter(pk=gen, attempt=attempt, state=outcome.snapshot.state.value).exists()


def _ended(gen: str) -> Outcome | None:
    archive = EventArchive.objects.filter(generation_id=gen).select_related("generation__pane").first()
    return None if archive is None else Outcome(snapshot_of(archive.generation), archive.events())


def _live(ended_within_ms: int) -> list[Live]:
    needs_look = NOT_ENDED | Q(ended_at__gte=now() - timedelta(milliseconds=ended_within_ms))
    rows = Generation.objects.filter(needs_look).order_by("queued_at", "number")
    columns = ("conversation_id", "number", "pk", "state", "queued_at")
    return [
        Live(Ref(str(conversation), number, str(gen)), State(state), epoch_ms(queued_at))
        for conversation, number, gen, state, queued_at in rows.values_list(*columns)
    ]
