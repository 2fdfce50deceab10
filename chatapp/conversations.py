"""What people do with conversations: synchronous database work, each object looked up with its owner."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils.timezone import now

from chatapp.errors import not_found
from chatapp.models import Conversation, Generation
from chatapp.owners import Owner
from streaming.lifecycle import LIVE
from streaming.log.ports import RETENTION_MS, Ref

_LIVE = sorted(LIVE)


def create_conversation(owner: Owner, title: str) -> Conversation:
    return Conversation.objects.create(user_id=owner.user, guest=owner.guest, title=title)


def conversations_of(owner: Owner) -> list[Conversation]:
    """List them, the one used last first."""
    return list(Conversation.objects.filter(owner.owns()).only("id", "title", "created_at", "updated_at"))


def conversation_of(owner: Owner, conversation: uuid.UUID, *, lock: bool = False) -> Conversation:
    rows = Conversation.objects.select_for_update() if lock else Conversation.objects.all()
    try:
        return rows.get(owner.owns(), pk=conversation)
    except Conversation.DoesNotExist as exc:
        raise not_found() from exc


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
    found = conversation_of(owner, conversation)
    found.title = title
    found.save(update_fields=["title"])
    return found


def generation_of(owner: Owner, gen: uuid.UUID) -> Generation:
    try:
        return Generation.objects.select_related("pane", "turn").get(owner.owns("conversation__"), pk=gen)
    except Generation.DoesNotExist as exc:
        raise not_found() from exc


def stoppable(owner: Owner, gen: uuid.UUID, keys: Sequence[str]) -> Ref:
    """Give an answer that somebody may stop: their own, or one that they have the key of."""
    row = Generation.objects.filter(_may_stop(owner, keys), pk=gen).only("conversation_id", "number").first()
    if row is None:
        raise not_found()
    return row.ref


def all_stoppable(owner: Owner, conversation: uuid.UUID, keys: Sequence[str]) -> list[Ref]:
    """Give what somebody may stop of all that runs in a conversation."""
    rows = Generation.objects.filter(_may_stop(owner, keys), conversation=conversation)
    live = [row.ref for row in rows.filter(state__in=_LIVE).only("conversation_id", "number")]
    if not live and not is_theirs(owner, conversation) and not rows.exists():
        raise not_found()
    return live


def _may_stop(owner: Owner, keys: Sequence[str]) -> Q:
    return owner.owns("conversation__") | Q(stop_key__in=[key for key in keys if key])


def delete(owner: Owner, conversation: uuid.UUID) -> list[Ref]:
    """Delete all of it. Gives the generations of which the log may still hold something."""
    recent = now() - timedelta(milliseconds=2 * RETENTION_MS)
    with transaction.atomic():
        found = conversation_of(owner, conversation, lock=True)
        # Held, so that nothing is asked, begun or ended meanwhile: what is found here is all that there is.
        rows = found.generations.select_for_update().only("conversation_id", "number", "ended_at")
        refs = [row.ref for row in rows if row.ended_at is None or row.ended_at >= recent]
        found.delete()
    return refs
