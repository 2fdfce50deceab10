"""A generation's row and its snapshot, each from the other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

from chatapp.models import Generation
from chatapp.models.conversation import epoch_ms
from streaming.lifecycle import State
from streaming.markdown import RENDER_VERSION, render
from streaming.snapshot import Block, Snapshot, Tool


def columns_of(snapshot: Snapshot) -> dict[str, Any]:
    """
    Give the columns of an ended generation, all but its attempt.

    Blocks that do not show the whole text, as after a driver's loss, are not kept; they are made
    again when the answer is shown.
    """
    length = len(snapshot.text)
    rendered = snapshot.shown == length
    return {
        "state": snapshot.state.value,
        "seq": snapshot.seq,
        "text": snapshot.text,
        "text_length": length,
        "text_sha256": hashlib.sha256(snapshot.text.encode()).hexdigest(),
        "reasoning": snapshot.reasoning,
        "tools": [asdict(tool) for tool in snapshot.tools],
        "steps": list(snapshot.steps),
        "usage": snapshot.usage,
        "finish": snapshot.finish or "",
        "error": snapshot.error,
        "cancel": snapshot.cancel,
        "resumed": snapshot.resumed,
        "timings": dict(snapshot.timings),
        "blocks": [asdict(block) for block in snapshot.blocks] if rendered else [],
        "render_version": RENDER_VERSION if rendered else 0,
    }


def snapshot_of(row: Generation) -> Snapshot:
    """Give an ended generation as it was folded; or, of a live one, what is known without its log."""
    if row.is_live:
        return _unheard(row)
    return Snapshot(
        gen=str(row.pk), state=State(row.state), attempt=row.attempt, seq=row.seq, model=row.model,
        pane=str(row.pane.uuid), params=row.params, text=row.text, reasoning=row.reasoning,
        tools=tuple(Tool(**tool) for tool in row.tools), steps=tuple(row.steps), usage=row.usage,
        finish=row.finish or None, error=row.error, cancel=row.cancel, resumed=row.resumed,
        timings=row.timings, blocks=tuple(Block(**block) for block in row.blocks),
        shown=row.text_length if row.render_version else 0,
        rendered_seq=row.seq if row.render_version else 0,
    )  # fmt: skip


def merged(row: Generation, logged: Snapshot | None) -> Snapshot:
    """Choose what to show of a live generation: its log, and before the log's first event its row."""
    if logged is None:
        return _unheard(row)
    if logged.seq == 0:
        return replace(_unheard(row), cancel_requested=logged.cancel_requested)
    # One that ends before it starts has no event that says these.
    return replace(logged, model=row.model, pane=str(row.pane.uuid), params=row.params)


def freshly_rendered(rows: Iterable[Generation]) -> Sequence[Generation]:
    """Render the ended generations whose blocks are missing or of an older version. Gives those that changed."""
    stale = [row for row in rows if not row.is_live and row.render_version != RENDER_VERSION]
    for row in stale:
        row.blocks = [asdict(block) for block in render(row.text)]
        row.render_version = RENDER_VERSION
    return stale


def _unheard(row: Generation) -> Snapshot:
    """Give a live generation before its first event: queued, also when its row says that a driver has begun."""
    return Snapshot(
        gen=str(row.pk), state=State.QUEUED, model=row.model, pane=str(row.pane.uuid), params=row.params,
        timings={"queued_at": epoch_ms(row.queued_at)},
    )  # fmt: skip
