"""New turns: synchronous database work."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import FilteredRelation, Q, Value
from django.db.models.functions import Coalesce, NullIf
from django.utils.timezone import now

from chatapp.asking import Added, Effective, next_places, once
from chatapp.errors import Problem, not_found
from chatapp.limits import check_running, live_of
from chatapp.models import Conversation, Generation, Pane, Turn
from chatapp.owners import Owner
from chatapp.parsing import NewTurn, PaneChoice, title_from

_SETTINGS = ("model", "params", "position", "active")


def earlier_turn(owner: Owner, conversation: uuid.UUID, wanted: NewTurn) -> Added | None:
    """
    Give what the same request added before.

    Raises:
        Problem: `not_found` or `key_reused`.
    """
    same_key = FilteredRelation("turns", condition=Q(turns__key=wanted.key))
    found = Conversation.objects.order_by().filter(owner.owns(), pk=conversation).annotate(earlier=same_key)
    for turn, fingerprint in found.values_list("earlier", "earlier__fingerprint"):
        return None if turn is None else _repeated(turn, fingerprint, wanted)
    raise not_found()


def add_turn(owner: Owner, conversation: uuid.UUID, wanted: NewTurn, effective: Effective) -> Added:
    """
    Add a turn with its queued generations, once for each key.

    The conversation's row is locked (SQLite: the database is), so of simultaneous requests with
    one key the first adds the turn and the others find it.

    Raises:
        Problem: `not_found`, `key_reused`, `turn_running`, `too_many_running`, or what `effective` raises.
    """
    return once(lambda: earlier_turn(owner, conversation, wanted), lambda: _add(owner, conversation, wanted, effective))


def _repeated(turn: uuid.UUID, fingerprint: str, wanted: NewTurn) -> Added:
    if fingerprint != wanted.fingerprint:
        raise Problem("key_reused", "This key was used for another turn. Use a new key for a new turn.", field="key")
    rows = list(Generation.objects.filter(turn=turn).select_related("pane", "turn"))
    if not rows:
        raise not_found()  # The conversation was deleted just now.
    return Added(rows[0].turn, rows, is_new=False)


def _add(owner: Owner, conversation: uuid.UUID, wanted: NewTurn, effective: Effective) -> Added:
    _lock(owner, conversation, wanted)
    params = [effective(choice) for choice in wanted.panes]
    live = live_of(owner)
    if conversation in live:
        raise Problem("turn_running", "Answers are still being written here. Stop them, or wait for their end.")
    check_running(len(live), len(wanted.panes))
    index, number = next_places(conversation)
    turn = Turn.objects.create(
        conversation_id=conversation, index=index, prompt=wanted.prompt, key=wanted.key, fingerprint=wanted.fingerprint
    )
    panes = _panes(conversation, wanted.panes, is_first=index == 0)
    rows = _generations(turn, panes, params, number)
    return Added(turn, Generation.objects.bulk_create(rows), is_new=True)


def _lock(owner: Owner, conversation: uuid.UUID, wanted: NewTurn) -> None:
    """Lock the conversation by noting that it is used; what comes later in the transaction reads what others wrote."""
    title = Coalesce(NullIf("title", Value("")), Value(title_from(wanted.prompt)))
    if not Conversation.objects.filter(owner.owns(), pk=conversation).update(title=title, updated_at=now()):
        raise not_found()


def _panes(conversation: uuid.UUID, choices: Iterable[PaneChoice], *, is_first: bool) -> list[Pane]:
    """Make the conversation's panes what the turn says; those it leaves out keep their history, inactive."""
    wanted = [
        Pane(conversation_id=conversation, uuid=choice.id, model=choice.model, params=choice.params, position=position)
        for position, choice in enumerate(choices)
    ]
    # Panes come with turns, so before the first there are none.
    known = {} if is_first else {pane.uuid: pane for pane in Pane.objects.filter(conversation=conversation)}
    left_out = known.keys() - {pane.uuid for pane in wanted}
    if any(known[one].active for one in left_out):
        Pane.objects.filter(conversation=conversation, uuid__in=left_out).update(active=False)
    changed = [pane for pane in wanted if not _is_same(pane, known.get(pane.uuid))]
    Pane.objects.bulk_create(
        changed, update_conflicts=True, unique_fields=("conversation", "uuid"), update_fields=_SETTINGS
    )
    return [pane if pane in changed else known[pane.uuid] for pane in wanted]


def _is_same(pane: Pane, known: Pane | None) -> bool:
    return known is not None and all(getattr(pane, name) == getattr(known, name) for name in _SETTINGS)


def _generations(
    turn: Turn, panes: Iterable[Pane], params: Iterable[Mapping[str, Any]], number: int
) -> Sequence[Generation]:
    return [
        Generation(
            conversation_id=turn.conversation_id, turn=turn, pane=pane, number=number + place, model=pane.model,
            params=own,
        )
        for place, (pane, own) in enumerate(zip(panes, params, strict=True))
    ]  # fmt: skip
