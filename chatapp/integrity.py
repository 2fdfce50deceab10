"""Whether an ended generation's row and its archived events still agree. Pure but for what it is given."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from chatapp.models import EventArchive, Generation
from chatapp.models.conversation import epoch_ms
from chatapp.rows import columns_of
from streaming.errors import IllegalTransition, ProtocolError
from streaming.events import Event, Start, Terminal, events_of
from streaming.lifecycle import State
from streaming.snapshot import fold_all

# What a row says in a word or two, so that both sides can be told; and what may be long, or somebody's words.
_SHORT = ("state", "seq", "attempt", "model", "finish", "usage", "resumed")
_LONG = ("text", "reasoning", "tools", "steps", "params", "error", "cancel", "timings")


def faults_of(row: Generation, archive: EventArchive | None) -> list[str]:
    """Say in words what does not agree, each in one line; nothing when all does."""
    faults = _faults_of_text(row)
    if archive is None:
        return [*faults, "its events are not archived"]
    try:
        lines = archive.events()
        events = events_of(lines)
    except (zlib.error, ValueError, TypeError, ProtocolError):
        return [*faults, "its archived events cannot be read"]
    if hashlib.sha256(lines.encode()).hexdigest() != archive.sha256:
        faults.append("the digest of its archived events differs")
    if len(events) != archive.count:
        faults.append(f"{archive.count} events were archived, and {len(events)} are there")
    return [*faults, *_faults_of_events(row, events)]


def _faults_of_text(row: Generation) -> list[str]:
    faults = []
    if len(row.text) != row.text_length:
        faults.append("the length of its text differs")
    if hashlib.sha256(row.text.encode()).hexdigest() != row.text_sha256:
        faults.append("the digest of its text differs")
    return faults


def _faults_of_events(row: Generation, events: Sequence[Event]) -> Iterator[str]:
    if {event.gen for event in events} != {str(row.pk)}:
        yield "its archived events are of another answer"
    if [event.seq for event in events] != list(range(1, len(events) + 1)):
        yield "its events are not numbered 1, 2, 3 …"
    end = events[-1].body
    if not isinstance(end, Terminal) or any(isinstance(event.body, Terminal) for event in events[:-1]):
        yield "its events do not end with the one terminal event"
        return
    try:
        said = _said(row, events)
    except (IllegalTransition, TypeError) as exc:
        yield f"its events cannot be folded: {exc}"
        return
    if (end.text_length, getattr(end, "text_sha256", row.text_sha256)) != (row.text_length, row.text_sha256):
        yield "its terminal event tells of another text"
    for name in _SHORT:
        if said[name] != getattr(row, name):
            yield f"its {name} is {getattr(row, name)!r}, and by its events {said[name]!r}"
    for name in _LONG:
        if said[name] != getattr(row, name):
            yield f"its events do not give its {name}"


def _said(row: Generation, events: Sequence[Event]) -> dict[str, Any]:
    """
    Fold the events into what the row should say.

    Raises:
        IllegalTransition
    """
    told = fold_all(str(row.pk), events)
    said = {**columns_of(told), "attempt": told.attempt}
    # One that ended before it started has no event that says these.
    started = isinstance(events[0].body, Start)
    said |= {"model": told.model, "params": told.params} if started else {"model": row.model, "params": row.params}
    return {**said, "seq": row.seq} if _was_told_again(row, events) else said


def _was_told_again(row: Generation, events: Sequence[Event]) -> bool:
    """
    Say whether the events are a snapshot's, told again after the log had lost its own.

    Those are fewer, and all from the moment when the answer was queued, but for an estimate of its usage and
    the end. Only a lost driver's answer is told so, never a completed one. All but their number must agree.
    """
    moments = {event.at for event in (events[0], *events[:-2])}
    return row.state != State.COMPLETED and moments == {epoch_ms(row.queued_at)}
