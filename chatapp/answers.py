"""Another answer of a pane to a turn that was asked before: retry, and continue.

Each is a new generation. Two generations' texts are never joined: one that continues another says so,
and is shown below it.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import StrEnum

from django.db.models import FilteredRelation, Q

from chatapp.asking import Added, Effective, next_places, once
from chatapp.conversations import generation_of
from chatapp.errors import Problem, not_found
from chatapp.limits import check_running, live_of
from chatapp.models import Conversation, Generation
from chatapp.owners import Owner
from chatapp.parsing import PaneChoice
from streaming.lifecycle import LIVE, State

# Finishes after which a model had more to say.
_CUT_FINISHES = ("length", "pause")


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


def earlier_answer(owner: Owner, wish: Wish) -> Added | None:
    """
    Give what the same request made before.

    Raises:
        Problem: `not_found`; the generation is not there, or not the owner's.
    """
    same_request = FilteredRelation("generations", condition=Q(generations__request=wish.request))
    found = Conversation.objects.order_by().filter(owner.owns(), generations=wish.gen).annotate(earlier=same_request)
    for (gen,) in found.values_list("earlier"):
        return None if gen is None else _repeated(generation_of(owner, gen))
    raise not_found()


def add_answer(owner: Owner, wish: Wish, effective: Effective) -> Added:
    """
    Queue another answer for the turn and pane of a generation, with its model and parameters.

    Raises:
        Problem: `not_found`, `answer_running`, `turn_passed`, `nothing_to_continue`, `answer_whole`,
            `too_many_running`, or what `effective` raises.
    """
    return once(lambda: earlier_answer(owner, wish), lambda: _add(owner, wish, effective))


def _repeated(row: Generation) -> Added:
    return Added(row.turn, [row], is_new=False)


def _add(owner: Owner, wish: Wish, effective: Effective) -> Added:
    _lock(owner, wish.gen)
    before = generation_of(owner, wish.gen)
    effective(PaneChoice(before.pane.uuid, before.model, before.params))
    _check_place(before)
    if wish.kind is Kind.CONTINUE:
        _check_text(before)
    check_running(len(live_of(owner)), 1)
    _, number = next_places(before.conversation_id)
    row = Generation.objects.create(
        conversation_id=before.conversation_id,
        turn=before.turn,
        pane=before.pane,
        number=number,
        model=before.model,
        params=before.params,
        request=wish.request,
        continues=before if wish.kind is Kind.CONTINUE else None,
    )
    return Added(before.turn, [row], is_new=True)


def _lock(owner: Owner, gen: uuid.UUID) -> None:
    """Hold off a simultaneous request with the same key, and a turn that is being added."""
    rows = Conversation.objects.select_for_update(of=("self",)).only("pk")
    try:
        rows.get(owner.owns(), generations=gen)
    except Conversation.DoesNotExist as exc:
        raise not_found() from exc


def _check_place(before: Generation) -> None:
    """Only a pane's newest answer is followed by another. While it is live there is no later turn."""
    siblings = Generation.objects.filter(pane_id=before.pane_id).order_by("-turn__index", "-number")
    turn, state = siblings.values_list("turn_id", "state")[0]
    if turn != before.turn_id:
        raise Problem("turn_passed", "The conversation has gone on since. Only the last answer can be given anew.")
    if state in LIVE:
        raise Problem("answer_running", "This answer is still being written. Stop it, or wait for its end.")


def _check_text(before: Generation) -> None:
    if before.is_live:
        raise Problem("answer_running", "This answer is still being written. Stop it, or wait for its end.")
    if not before.text:
        raise Problem("nothing_to_continue", "There is no text yet to go on from. Ask for a new answer instead.")
    if before.state == State.COMPLETED and before.finish not in _CUT_FINISHES:
        raise Problem("answer_whole", "This answer is complete. Ask for a new one instead.")
