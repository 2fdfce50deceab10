"""What log and archive promise."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from streaming.errors import StreamingError
from streaming.events import TERMINAL_TYPES, BlockView, Event, view_from_dict
from streaming.frames import cursor_key
from streaming.lifecycle import TERMINAL
from streaming.log.codec import event_of
from streaming.log.ports import Kind, Logged
from streaming.snapshot import Snapshot, fold, fold_all, fold_view
from tests.torture.evidence import Evidence, Lost
from tests.torture.invariants.telling import difference


def ends_once(evidence: Evidence) -> Iterator[str]:
    """Every generation is in exactly one terminal state, in the database and in its archive."""
    if evidence.row.state not in TERMINAL:
        yield f"the database says {evidence.row.state}"
    elif evidence.archive is None:
        yield "there is no archive of its events"
    else:
        state = fold_all("", evidence.archived).state
        if state is not evidence.row.state:
            yield f"the archive ends {state}, the database says {evidence.row.state}"


def seq_is_dense(evidence: Evidence) -> Iterator[str]:
    """Archived events count 1, 2, 3 …, and the archive's count and digest are those of its lines."""
    archive = evidence.archive
    if archive is None:
        return
    seqs = [event.seq for event in archive.events]
    # What was told again, because the suite had destroyed it and no driver was left, is numbered anew.
    is_told_again = evidence.is_taken_over and evidence.losses
    if seqs != list(range(1, len(seqs) + 1)) or not (is_told_again or len(seqs) == evidence.row.seq):
        yield f"seqs are {seqs[:5]} … {seqs[-5:]}, the row's seq is {evidence.row.seq}"
    if archive.count != len(seqs) or archive.sha256 != hashlib.sha256(archive.lines.encode()).hexdigest():
        yield "count or digest of the archive do not fit its lines"


def terminal_is_last(evidence: Evidence) -> Iterator[str]:
    """There is exactly one terminal event, and nothing comes after it, neither in the archive nor in the log."""
    for name, events in (("archive", evidence.archived), ("log", _log_events(evidence))):
        places = [place for place, event in enumerate(events) if event.body.type in TERMINAL_TYPES]
        if events and len({events[place].seq for place in places}) != 1:
            yield f"the {name} has terminal events at {places} of {len(events)}"
        elif events and events[-1].body.type not in TERMINAL_TYPES:
            yield f"in the {name}, {events[-1].body.type} comes after the terminal event"


def log_is_whole(evidence: Evidence) -> Iterator[str]:
    """The log knows every generation and holds all its events, unless the suite destroyed some of it."""
    must_know = not evidence.lost(Lost.STATE, Lost.TAIL) or _was_restored(evidence)
    if must_know and evidence.lease is None:
        yield "the log does not know the generation"
    if not evidence.losses:
        missing = set(range(1, evidence.row.seq + 1)) - {event.seq for event in _log_events(evidence)}
        if missing:
            yield f"the log lacks {len(missing)} of {evidence.row.seq} events, {sorted(missing)[:5]} …"


def log_repeats_itself(evidence: Evidence) -> Iterator[str]:
    """Whatever the log holds twice it holds alike, and what it holds is what the archive holds."""
    if evidence.losses and evidence.is_taken_over:
        return
    may_jump = evidence.lost(Lost.LOG, Lost.TAIL)
    archived = {event.seq: event.body for event in evidence.archived}
    expected = 1
    for event in _log_events(evidence):
        if event.seq > expected and not may_jump:
            yield f"the log jumps to seq {event.seq}, {expected} was next"
        expected = max(expected, event.seq + 1)
        if archived.get(event.seq) != event.body:
            yield f"seq {event.seq} is {event.body} in the log and {archived.get(event.seq)} in the archive"


def fence_holds(evidence: Evidence) -> Iterator[str]:
    """After a newer driver's first event no older driver's event is in the log."""
    newest = 0
    for logged in evidence.entries:
        if logged.entry.attempt < newest:
            yield f"attempt {logged.entry.attempt} wrote seq {logged.entry.seq} after attempt {newest} had"
        newest = max(newest, logged.entry.attempt)


def attempts_agree(evidence: Evidence) -> Iterator[str]:
    """Row and archive name the same attempt as the one that ended it, and no older one wrote the log's end."""
    row, archived = evidence.row, [event.attempt for event in evidence.archived]
    if archived and archived[-1] != row.attempt:
        yield f"attempt {archived[-1]} ended it by the archive, attempt {row.attempt} by the row"
    if any(later < earlier for earlier, later in pairwise(archived)):
        yield f"attempts in the archive are {archived}"
    # A repair writes a committed end again, in an attempt of its own.
    ends = [event.attempt for event in _log_events(evidence) if event.body.type in TERMINAL_TYPES]
    if any(attempt < row.attempt for attempt in ends):
        yield f"attempts {ends} ended it by the log, attempt {row.attempt} by the row"
    if evidence.lease is not None and evidence.lease.attempt < row.attempt:
        yield f"the log knows attempt {evidence.lease.attempt}, the row attempt {row.attempt}"


def snapshot_and_rest_are_the_whole(evidence: Evidence) -> Iterator[str]:
    """A snapshot at cursor c and the log after c give the same as the log from its beginning, for every c taken."""
    if evidence.lost(Lost.LOG):
        return
    number, destroyed_at = evidence.asked.number, max((loss.at for loss in evidence.losses), default=0.0)
    whole = _read_on(Snapshot(evidence.asked.gen), evidence.entries)
    for sample in evidence.samples:
        if cursor_key(sample.cursor)[0] <= destroyed_at:
            continue
        rest = [one for one in evidence.entries if cursor_key(one.cursor) > cursor_key(sample.cursor)]
        try:
            ours = _read_on(sample.generations[number], rest)
        except StreamingError as exc:
            yield f"from {sample.cursor} on: {exc!r}"
        else:
            yield from _differences(f"from {sample.cursor} on", ours, whole)


def log_is_repaired(evidence: Evidence) -> Iterator[str]:
    """If the log still knows a generation, it knows its end, and it is the database's."""
    if evidence.lease is not None and evidence.lease.state is not evidence.row.state:
        yield f"the log says {evidence.lease.state}, the database {evidence.row.state}"


def _was_restored(evidence: Evidence) -> bool:
    """Say whether a driver lived that had to write again what was destroyed."""
    destroyed_at = max((loss.at for loss in evidence.losses), default=0.0)
    return not evidence.is_taken_over and destroyed_at < evidence.ended_at


def _log_events(evidence: Evidence) -> list[Event]:
    return [event_of(evidence.asked.gen, one) for one in evidence.entries if one.entry.kind is not Kind.BLOCK]


def _read_on(snapshot: Snapshot, rest: Sequence[Logged]) -> Snapshot:
    for one in rest:
        if one.entry.kind is not Kind.BLOCK:
            snapshot = fold(snapshot, event_of(snapshot.gen, one))
            continue
        view = view_from_dict(json.loads(one.entry.payload))
        if isinstance(view, BlockView):
            snapshot = fold_view(snapshot, view)
    return snapshot


def _differences(where: str, ours: Snapshot, theirs: Snapshot) -> Iterator[str]:
    # A driver that took over writes its attempt with its first event; until then the claim alone has it.
    if replace(ours, attempt=0) != replace(theirs, attempt=0):
        names = [name for name in Snapshot.__slots__ if getattr(ours, name) != getattr(theirs, name)]
        yield f"{where}: {names} differ: {difference(ours.text, theirs.text)}"
