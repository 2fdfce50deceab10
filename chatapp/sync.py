"""The sync document: everything a page shows of a conversation, and the cursor to go on from."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.db.models import Prefetch

from chatapp.admission import places
from chatapp.database import in_database
from chatapp.errors import not_found
from chatapp.models import Conversation, Generation, Pane, Turn
from chatapp.models.conversation import epoch_ms
from chatapp.owners import Owner
from chatapp.rows import freshly_rendered, merged, snapshot_of
from streaming.events import VERSION, Json
from streaming.lifecycle import State
from streaming.log.ports import Log, Ref
from streaming.snapshot import Snapshot, snapshot_to_dict


@dataclass(frozen=True, slots=True)
class Rows:
    """One conversation as the database knows it."""

    conversation: Conversation
    panes: Sequence[Pane]
    turns: Sequence[Turn]
    places: Mapping[str, int] = field(default_factory=dict)  # of those that wait, whosever they are

    def generations(self) -> Iterable[Generation]:
        return (row for turn in self.turns for row in turn.generations.all())


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
    refs = [row.ref for row in rows.generations() if row.is_live]
    see(refs)
    logged = (await log.snapshot(str(conversation), refs)).generations if refs else {}
    if any(row.is_live and row.attempt and row.number not in logged for row in rows.generations()):
        # It has ended meanwhile: its row tells it now.
        rows = await in_database(_read, owner, conversation)
    return {
        "v": VERSION,
        "conversation": rows.conversation.to_dict(),
        "cursor": cursor,
        "panes": [pane.to_dict() for pane in rows.panes],
        "turns": [_turn(turn, logged, rows.places) for turn in rows.turns],
    }


def turn_document(owner: Owner, conversation: uuid.UUID, turn: uuid.UUID) -> dict[str, Json]:
    """Build one turn's part of the document from the database alone, as of a turn that was just added."""
    rows = _read(owner, conversation, turn)
    return _turn(rows.turns[0], {}, rows.places)


def turn_with(row: Generation) -> dict[str, Json]:
    """Build a turn's part of the document with one generation only: all that is new in it."""
    place = places().get(str(row.pk))
    return {**_head(row.turn), "generations": [generation_document(row, snapshot_of(row), place)]}


def generation_document(row: Generation, snapshot: Snapshot, place: int | None) -> dict[str, Json]:
    """Build a generation's part: its snapshot, and what only its row knows."""
    return {
        **snapshot_to_dict(snapshot),
        "number": row.number,
        "continues": str(row.continues_id) if row.continues_id else None,
        "place": place if snapshot.state is State.QUEUED else None,
    }


def _turn(turn: Turn, logged: Mapping[int, Snapshot], line: Mapping[str, int]) -> dict[str, Json]:
    generations = [
        generation_document(row, _snapshot(row, logged), line.get(str(row.pk))) for row in turn.generations.all()
    ]
    return {**_head(turn), "generations": generations}


def _head(turn: Turn) -> dict[str, Json]:
    return {"id": str(turn.pk), "prompt": turn.prompt, "created_at": epoch_ms(turn.created_at)}


def _snapshot(row: Generation, logged: Mapping[int, Snapshot]) -> Snapshot:
    return merged(row, logged.get(row.number)) if row.is_live else snapshot_of(row)


def _read(owner: Owner, conversation: uuid.UUID, turn: uuid.UUID | None = None) -> Rows:
    found = Conversation.objects.filter(owner.owns(), pk=conversation).first()
    if found is None:
        raise not_found()
    generations = Prefetch("generations", Generation.objects.select_related("pane"))
    turns = found.turns.prefetch_related(generations)
    panes = found.panes.filter(active=True)
    rows = Rows(found, list(panes), list(turns if turn is None else turns.filter(pk=turn)))
    if any(row.state == State.QUEUED for row in rows.generations()):
        rows = replace(rows, places=places())
    stale = freshly_rendered(rows.generations())
    if stale:
        Generation.objects.bulk_update(stale, ["blocks", "render_version"])
    return rows
