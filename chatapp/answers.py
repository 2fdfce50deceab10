"""Another answer of a pane to a turn that was asked before: retry, and continue.

Each is a new generation. Two generations' texts are never joined: one that continues another says so,
and is shown below it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from django.db import transaction
from django.db.models import QuerySet

from chatapp.conversations import generation_of
from chatapp.errors import Problem
from chatapp.limits import check_running
from chatapp.models import Conversation, Generation
from chatapp.owners import Owner
from chatapp.parsing import PaneChoice
from streaming.lifecycle import State

# Finishes after which a model had more to say.
_CUT_FINISHES = ("length", "pause")

# Raises a Problem for a model that cannot be used now.
Check: TypeAlias = Callable[[PaneChoice], Any]


class Kind(StrEnum):
    RETRY = "retry"
    CONTINUE = "continue"


@dataclass(frozen=True, slots=True)
class Wish:
    """`key` makes it idempotent, for one kind and one generation."""

    kind: Kind
    gen: uuid.UUID
    key: str

    @property
    def request(self) -> str:
        return f"{self.kind} {self.gen} {self.key}"


@dataclass(frozen=True, slots=True)
class AddedAnswer:
    row: Generation
    is_new: bool  # False when the same request had been answered before


def earlier_answer(owner: Owner, wish: Wish) -> Generation | None:
    """
    Give what the same request made before.

    Raises:
        Problem: `not_found`; the generation is not there, or not the owner's.
    """
    before = generation_of(owner, wish.gen)
    return _rows(before.conversation_id).filter(request=wish.request).first()


def add_answer(owner: Owner, wish: Wish, check: Check) -> AddedAnswer:
    """
    Queue another answer for the turn and pane of a generation, with its model and parameters.

    Raises:
        Problem: `not_found`, `answer_running`, `turn_passed`, `nothing_to_continue`, `answer_whole`,
            `too_many_running`, or what `check` raises.
    """
    with transaction.atomic():
        before = generation_of(owner, wish.gen)
        # Holds off a simultaneous request with the same key, and a turn that is being added.
        Conversation.objects.select_for_update().get(pk=before.conversation_id)
        earlier = _rows(before.conversation_id).filter(request=wish.request).first()
        if earlier is not None:
            return AddedAnswer(earlier, is_new=False)
        check(PaneChoice(before.pane.uuid, before.model, before.params))
        _check_place(before)
        if wish.kind is Kind.CONTINUE:
            _check_text(before)
        check_running(owner, 1)
        return AddedAnswer(_add(before, wish), is_new=True)


def _add(before: Generation, wish: Wish) -> Generation:
    return Generation.objects.create(
        conversation_id=before.conversation_id,
        turn=before.turn,
        pane=before.pane,
        number=Generation.objects.filter(conversation_id=before.conversation_id).count() + 1,
        model=before.model,
        params=before.params,
        request=wish.request,
        continues=before if wish.kind is Kind.CONTINUE else None,
    )


def _check_place(before: Generation) -> None:
    siblings = Generation.objects.filter(pane_id=before.pane_id)
    newest = siblings.filter(turn_id=before.turn_id).latest("number")
    if newest.is_live:
        raise Problem("answer_running", "This answer is still being written. Stop it, or wait for its end.")
    if siblings.filter(turn__index__gt=before.turn.index).exists():
        raise Problem("turn_passed", "The conversation has gone on since. Only the last answer can be given anew.")


def _check_text(before: Generation) -> None:
    if before.is_live:
        raise Problem("answer_running", "This answer is still being written. Stop it, or wait for its end.")
    if not before.text:
        raise Problem("nothing_to_continue", "There is no text yet to go on from. Ask for a new answer instead.")
    if before.state == State.COMPLETED and before.finish not in _CUT_FINISHES:
        raise Problem("answer_whole", "This answer is complete. Ask for a new one instead.")


def _rows(conversation: uuid.UUID) -> QuerySet[Generation]:
    return Generation.objects.filter(conversation_id=conversation).select_related("pane", "turn")
