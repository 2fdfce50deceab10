"""What people do with conversations: synchronous database work, each object looked up with its owner."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils.timezone import now

from chatapp.errors import Problem, not_found
from chatapp.limits import check_running
from chatapp.models import Conversation, Generation, Pane, Turn
from chatapp.owners import Owner
from chatapp.parsing import NewTurn, PaneChoice, title_from
from streaming.lifecycle import LIVE
from streaming.log.ports import RETENTION_MS, Ref

_LIVE = sorted(LIVE)


@dataclass(frozen=True, slots=True)
class AddedTurn:
    turn: uuid.UUID
    generations: tuple[str, ...]  # their UUIDs
    is_new: bool  # False when the same request had been answered before


def create_conversation(owner: Owner, title: str) -> Conversation:
    return Conversation.objects.create(user_id=owner.user, guest=owner.guest, title=title)


def conversations_of(owner: Owner) -> list[Conversation]:
    """List them, the one used last first."""
    return list(Conversation.objects.filter(owner.owns()).only("id", "title", "created_at", "updated_at"))


def is_theirs(owner: Owner, conversation: uuid.UUID) -> bool:
    return Conversation.objects.filter(owner.owns(), pk=conversation).exists()


def names_of(owner: Owner, conversation: uuid.UUID) -> dict[int, str]:
    """Give the UUIDs of the conversation's generations by their numbers."""
    found = Conversation.objects.order_by().filter(owner.owns(), pk=conversation)
    # A conversation without generations gives one row without a number; one that is not there gives none.
    rows = list(found.values_list("generations__number", "generations"))
    if not rows:
        raise not_found()
    return {number: str(gen) for number, gen in rows if number is not None}


def rename(owner: Owner, conversation: uuid.UUID, title: str) -> Conversation:
    found = _find(owner, conversation)
    found.title = title
    found.save(update_fields=["title"])
    return found


def generation_of(owner: Owner, gen: uuid.UUID) -> Generation:
    row = Generation.objects.filter(owner.owns("conversation__"), pk=gen).select_related("pane", "turn").first()
    if row is None:
        raise not_found()
    return row


def live_refs(owner: Owner, conversation: uuid.UUID) -> list[Ref]:
    rows = _find(owner, conversation).generations.filter(state__in=_LIVE)
    return [row.ref for row in rows.only("conversation_id", "number")]


def delete(owner: Owner, conversation: uuid.UUID) -> list[Ref]:
    """Delete all of it. Gives the generations of which the log may still hold something."""
    found = _find(owner, conversation)
    in_log = Q(state__in=_LIVE) | Q(ended_at__gte=now() - timedelta(milliseconds=2 * RETENTION_MS))
    refs = [row.ref for row in found.generations.filter(in_log).only("conversation_id", "number")]
    found.delete()
    return refs


def earlier_turn(owner: Owner, conversation: uuid.UUID, wanted: NewTurn) -> AddedTurn | None:
    """
    Give what the same request added before.

    Raises:
        Problem: `not_found` or `key_reused`.
    """
    earlier = _find(owner, conversation).turns.filter(key=wanted.key).first()
    return None if earlier is None else _repeated(earlier, wanted)


def add_turn(
    owner: Owner, conversation: uuid.UUID, wanted: NewTurn, effective: Callable[[PaneChoice], Mapping[str, Any]]
) -> AddedTurn:
    """
    Add a turn with its queued generations, once for each key.

    The conversation's row is locked (SQLite: the database is), so of simultaneous requests with
    one key the first adds the turn and the others find it. `effective` gives a pane's parameters
    together with its model's own, and raises a Problem for a model that cannot be used.

    Raises:
        Problem: `not_found`, `key_reused`, `turn_running`, `too_many_running`, or what `effective` raises.
    """
    with transaction.atomic():
        found = _find(owner, conversation, lock=True)
        earlier = found.turns.filter(key=wanted.key).first()
        if earlier is not None:
            return _repeated(earlier, wanted)
        # Model and parameters are looked at after the key: a repeat is answered whatever has changed since.
        params = [effective(choice) for choice in wanted.panes]
        if found.generations.filter(state__in=_LIVE).exists():
            raise Problem("turn_running", "Answers are still being written here. Stop them, or wait for their end.")
        check_running(owner, len(wanted.panes))
        return _add(found, wanted, params)


def _add(found: Conversation, wanted: NewTurn, params: list[Mapping[str, Any]]) -> AddedTurn:
    turn = found.turns.create(
        index=found.turns.count(), prompt=wanted.prompt, key=wanted.key, fingerprint=wanted.fingerprint
    )
    panes = _panes(found, wanted.panes)
    first = found.generations.count() + 1
    rows = [
        Generation(
            conversation=found, turn=turn, pane=panes[choice.id], number=first + place, model=choice.model, params=own
        )
        for place, (choice, own) in enumerate(zip(wanted.panes, params, strict=True))
    ]
    Generation.objects.bulk_create(rows)
    found.title = found.title or title_from(wanted.prompt)
    found.updated_at = now()
    found.save(update_fields=["title", "updated_at"])
    return AddedTurn(turn.pk, tuple(str(row.pk) for row in rows), is_new=True)


def _repeated(turn: Turn, wanted: NewTurn) -> AddedTurn:
    if turn.fingerprint != wanted.fingerprint:
        raise Problem("key_reused", "This key was used for another turn. Use a new key for a new turn.", field="key")
    gens = turn.generations.values_list("pk", flat=True)
    return AddedTurn(turn.pk, tuple(str(gen) for gen in gens), is_new=False)


def _panes(found: Conversation, choices: tuple[PaneChoice, ...]) -> dict[uuid.UUID, Pane]:
    """Make the conversation's panes what the turn says; those it leaves out keep their history, inactive."""
    found.panes.update(active=False)
    panes = {}
    for position, choice in enumerate(choices):
        settings = {"model": choice.model, "params": choice.params, "position": position, "active": True}
        panes[choice.id], _ = found.panes.update_or_create(uuid=choice.id, defaults=settings)
    return panes


def _find(owner: Owner, conversation: uuid.UUID, *, lock: bool = False) -> Conversation:
    rows = Conversation.objects.select_for_update() if lock else Conversation.objects.all()
    found = rows.filter(owner.owns(), pk=conversation).first()
    if found is None:
        raise not_found()
    return found
