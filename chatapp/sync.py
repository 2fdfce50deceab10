"""The sync document: everything a page shows of a conversation, and the cursor to go on from."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Prefetch

from chatapp.admission import places
from chatapp.asking import Added
from chatapp.conversations import conversation_of
from chatapp.database import in_database
from chatapp.models import Conversation, Generation, Pane, Turn
from chatapp.models.conversation import epoch_ms
from chatapp.owners import Owner
from chatapp.rows import freshly_rendered, merged, snapshot_of
from streaming.events import VERSION, Json
from streaming.lifecycle import LIVE, State
from streaming.log.ports import Log, Ref
from streaming.snapshot import Snapshot, snapshot_to_dict


@dataclass(frozen=True, slots=True)
class Rows:
    """One conversation as the database knows it."""

    conversation: Conversation
    panes: Sequence[Pane]
    turns: Sequence[Turn]
    generations: Sequence[Generation]
    places: Mapping[str, int]


async def sync_document(
    log: Log, owner: Owner, conversation: uuid.UUID, see: Callable[[Sequence[Ref]], None]
) -> dict[str, Json]:
    """
    Build the document: first the cursor, then rows, then the log's state of what is live.

    In this order nothing is lost: what happens in between is in the state, and comes again after the
    cursor, where readers skip it by its seq. `see` is told what is live: it may have lost its driver.

    Raises:
        Problem: `not_found`.
        LogUnavailable
    """
    cursor, _ = await log.position(str(conversation))
    rows = await in_database(_read, owner, conversation)
    refs = [row.ref for row in rows.generations if row.is_live]
    see(refs)
    logged = (await log.snapshot(str(conversation), refs)).generations if refs else {}
    if any(row.is_live and row.attempt and row.number not in logged for row in rows.generations):
        # It has ended meanwhile: its row tells it now.
        rows = await in_database(_read, owner, conversation)
    return {
        "v": VERSION,
        "conversation": rows.conversation.to_dict(),
        "cursor": cursor,
        "panes": [pane.to_dict() for pane in rows.panes],
        "turns": [_turn(turn, turn.generations.all(), logged, rows.places) for turn in rows.turns],
    }


def turn_document(added: Added) -> dict[str, Json]:
    """Build a turn's part of the document from the database alone, with what a request added of its generations."""
    _keep_rendered(added.generations)
    line = _line(added.generations)
    return _turn(added.turn, added.generations, {}, line)


def generation_document(row: Generation, snapshot: Snapshot, place: int | None) -> dict[str, Json]:
    """Build a generation's part: its snapshot, and what only its row knows."""
    return {
        **snapshot_to_dict(snapshot),
        "number": row.number,
        "continues": str(row.continues_id) if row.continues_id else None,
        "place": place if snapshot.state is State.QUEUED else None,
        **({"stop_key": row.stop_key} if snapshot.state in LIVE else {}),
    }


def _turn(
    turn: Turn, rows: Iterable[Generation], logged: Mapping[int, Snapshot], line: Mapping[str, int]
) -> dict[str, Json]:
    generations = [generation_document(row, _snapshot(row, logged), line.get(str(row.pk))) for row in rows]
    head = {"id": str(turn.pk), "prompt": turn.prompt, "created_at": epoch_ms(turn.created_at)}
    return {**head, "generations": generations}


def _snapshot(row: Generation, logged: Mapping[int, Snapshot]) -> Snapshot:
    return merged(row, logged.get(row.number)) if row.is_live else snapshot_of(row)


def _read(owner: Owner, conversation: uuid.UUID) -> Rows:
    found = conversation_of(owner, conversation)
    generations = Prefetch("generations", Generation.objects.select_related("pane"))
    turns = list(found.turns.prefetch_related(generations))
    rows = [row for turn in turns for row in turn.generations.all()]
    _keep_rendered(rows)
    return Rows(found, list(found.panes.filter(active=True)), turns, rows, _line(rows))


def _line(rows: Iterable[Generation]) -> Mapping[str, int]:
    """Give the places of those that wait, whosever they are, if any of these do."""
    return places() if any(row.state == State.QUEUED for row in rows) else {}


def _keep_rendered(rows: Iterable[Generation]) -> None:
    stale = freshly_rendered(rows)
    if stale:
        Generation.objects.bulk_update(stale, ["blocks", "render_version"])
