"""
What must hold of every generation, whatever was done to the site. Pure.

Each function is one promise; its docstring is the sentence. It yields how the promise was broken.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from streaming.driver import RETRIES
from streaming.errors import StreamingError
from streaming.events import TERMINAL_TYPES, BlockView, Cancelled, Done, Error, Event, view_from_dict
from streaming.frames import cursor_key
from streaming.lifecycle import TERMINAL, State
from streaming.log.codec import event_of
from streaming.log.ports import Kind, Logged
from streaming.snapshot import Snapshot, fold, fold_view
from tests.torture.evidence import Archive, Evidence

Invariant: TypeAlias = Callable[[Evidence], Iterator[str]]

# The upstream may end while the request to stop is on its way, and the page hears of its end later.
_CROSSING_MS = 250.0
_TOLERANCE_MS = 60.0


def ends_once(evidence: Evidence) -> Iterator[str]:
    """Every generation is in exactly one terminal state, in the database and in its archive."""
    if evidence.row.state not in TERMINAL:
        yield f"the database says {evidence.row.state}"
    elif evidence.archive is None:
        yield "there is no archive of its events"
    else:
        state = _folded(evidence.archive.events).state
        if state is not evidence.row.state:
            yield f"the archive ends {state}, the database says {evidence.row.state}"


def seq_is_dense(evidence: Evidence) -> Iterator[str]:
    """Archived events count 1, 2, 3 …, and the archive's count and digest are those of its lines."""
    archive = evidence.archive
    if archive is None:
        return
    seqs = [event.seq for event in archive.events]
    # What was told again, because the suite had deleted its entries, is numbered anew.
    is_told_again = evidence.harm.wiped and evidence.row.state is not State.COMPLETED
    if seqs != list(range(1, len(seqs) + 1)) or not (is_told_again or len(seqs) == evidence.row.seq):
        yield f"seqs are {seqs[:5]} … {seqs[-5:]}, the row's seq is {evidence.row.seq}"
    if archive.count != len(seqs) or archive.sha256 != hashlib.sha256(archive.lines.encode()).hexdigest():
        yield "count or digest of the archive do not fit its lines"


def terminal_is_last(evidence: Evidence) -> Iterator[str]:
    """There is exactly one terminal event, and nothing comes after it, neither in the archive nor in the log."""
    for name, events in (("archive", _archived(evidence)), ("log", _log_events(evidence))):
        places = [place for place, event in enumerate(events) if event.body.type in TERMINAL_TYPES]
        if events and len({events[place].seq for place in places}) != 1:
            yield f"the {name} has terminal events at {places} of {len(events)}"
        elif events and events[-1].body.type not in TERMINAL_TYPES:
            yield f"in the {name}, {events[-1].body.type} comes after the terminal event"


def log_repeats_itself(evidence: Evidence) -> Iterator[str]:
    """Whatever the log holds twice it holds alike, and what it holds is what the archive holds."""
    if evidence.harm.wiped:
        return
    archived = {event.seq: event.body for event in _archived(evidence)}
    expected = 1
    for event in _log_events(evidence):
        if event.seq > expected:
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


def snapshot_and_rest_are_the_whole(evidence: Evidence) -> Iterator[str]:
    """A snapshot at cursor c and the log after c give the same as the log's snapshot at the end, for every c taken."""
    if evidence.logged is None or evidence.harm.wiped:
        return
    number = evidence.asked.number
    for sample in evidence.samples:
        rest = [one for one in evidence.entries if cursor_key(one.cursor) > cursor_key(sample.cursor)]
        snapshot = sample.generations[number]
        try:
            whole = _read_on(evidence.asked.gen, snapshot, rest)
        except StreamingError as exc:
            yield f"from {sample.cursor} on: {exc!r}"
        else:
            yield from _differences(f"from {sample.cursor} on", whole, evidence.logged)


def texts_are_one(evidence: Evidence) -> Iterator[str]:
    """Log, archive, database and terminal event agree on the text, by code points and by digest."""
    row = evidence.row
    folded = _folded(_archived(evidence))
    if (folded.text, folded.reasoning) != (row.text, row.reasoning):
        yield f"archive and row differ: {_difference(folded.text, row.text)}"
    if evidence.logged is not None and evidence.logged.text != row.text:
        yield f"log and row differ: {_difference(evidence.logged.text, row.text)}"
    digest = hashlib.sha256(row.text.encode()).hexdigest()
    if (row.text_length, row.text_sha256) != (len(row.text), digest):
        yield "length or digest of the row do not fit its text"
    match _archived(evidence)[-1:]:
        case [Event(body=Done(text_sha256=said, text_length=length))] if (said, length) != (digest, len(row.text)):
            yield "length or digest of the terminal event do not fit the text"
        case [Event(body=Cancelled(text_length=length) | Error(text_length=length))] if length != len(row.text):
            yield f"the terminal event says {length} characters, the text has {len(row.text)}"


def log_is_repaired(evidence: Evidence) -> Iterator[str]:
    """If the log still knows a generation, it knows its end, and it is the database's."""
    if evidence.logged is not None and evidence.logged.state is not evidence.row.state:
        yield f"the log says {evidence.logged.state}, the database {evidence.row.state}"


def text_is_the_upstreams(evidence: Evidence) -> Iterator[str]:
    """The text is a prefix of what the upstream sent in one call: nothing lost, doubled, spliced or foreign."""
    script, prompt = evidence.script, evidence.asked.prompt
    for name, ours, theirs in (
        ("text", evidence.row.text, script.text(prompt)),
        ("reasoning", evidence.row.reasoning, script.reasoning(prompt)),
    ):
        if not theirs.startswith(ours):
            yield f"{name}: {_difference(ours, theirs)}"
    most = max((call.frames - 1 for call in evidence.calls), default=0)
    sent = "".join(script.pieces(prompt)[: max(0, most)])
    said = evidence.row.reasoning + evidence.row.text
    if len(said) > len(sent):
        yield f"the answer has {len(said)} characters, the upstream sent {len(sent)}"


def done_is_true(evidence: Evidence) -> Iterator[str]:
    """Completed means: the upstream said so itself in this generation's call, and every character is there."""
    if evidence.row.state is not State.COMPLETED:
        return
    if not evidence.script.finishes:
        yield "the script never says that it finished"
    if not any(call.outcome == "finished" for call in evidence.calls):
        yield f"the upstream finished none of its calls: {evidence.calls}"
    if evidence.row.text != evidence.script.text(evidence.asked.prompt):
        yield _difference(evidence.row.text, evidence.script.text(evidence.asked.prompt))


def pages_agree(evidence: Evidence) -> Iterator[str]:
    """Every page ends with the database's answer and state, and has never shown another end."""
    for seen in evidence.seen:
        row, page = evidence.row, seen.snapshot
        if (page.state, page.seq) != (row.state, row.seq):
            yield f"{seen.page} shows {page.state} at seq {page.seq}; the row says {row.state} at {row.seq}"
        if (page.text, page.reasoning) != (row.text, row.reasoning):
            yield f"{seen.page}: {_difference(page.text, row.text)}"
        if seen.first_end is not row.state:
            yield f"{seen.page} has shown the end {seen.first_end}, it is {row.state}"
        if page.shown != len(page.text) and page.rendered_seq:
            yield f"{seen.page} shows {page.shown} of {len(page.text)} characters as blocks"


def nothing_is_taken_back(evidence: Evidence) -> Iterator[str]:
    """What a page has shown stays, unless the suite destroyed the log's copy and no driver was left to restore it."""
    if evidence.harm.wiped and evidence.row.state is not State.COMPLETED:
        return
    for seen in evidence.seen:
        if not evidence.row.text.startswith(seen.longest):
            yield f"{seen.page} had shown more: {_difference(evidence.row.text, seen.longest)}"


def model_is_called_once(evidence: Evidence) -> Iterator[str]:
    """An attempt calls the model once; it repeats a call, at most twice, only before the first piece."""
    calls, attempts = sorted(evidence.calls, key=lambda call: call.opened_mono), max(1, evidence.row.attempt)
    if len(calls) > attempts * (1 + RETRIES):
        yield f"{len(calls)} calls in {attempts} attempts"
    if evidence.harm.upstream_way:
        # What the upstream sent may never have arrived, so the retry was right.
        return
    spoken = sum(call.frames > 1 for call in calls)
    if spoken > attempts:
        yield f"the model spoke in {spoken} calls of {attempts} attempts"
    for earlier, later in pairwise(calls):
        if earlier.closed_mono is None or earlier.closed_mono > later.opened_mono + _TOLERANCE_MS:
            yield "two calls were open at once"


def no_call_is_left_open(evidence: Evidence) -> Iterator[str]:
    """After the end the upstream has no open call of the generation."""
    if any(call.outcome == "open" for call in evidence.calls):
        yield f"{evidence.calls}"


def stop_means_stop(evidence: Evidence) -> Iterator[str]:
    """A stop that was acknowledged ends as cancelled, unless the answer had ended before."""
    if not evidence.stops or evidence.harm.wiped or evidence.row.state is State.CANCELLED:
        return
    acknowledged_at = min(stop.at for stop in evidence.stops)
    stopped_by_itself = all(
        call.closed_at is not None and call.closed_at <= acknowledged_at + _CROSSING_MS for call in evidence.calls
    )
    if evidence.row.state is State.COMPLETED and not stopped_by_itself:
        yield f"attempt {evidence.row.attempt} completed, though stopped: {evidence.stops}; {evidence.calls}"
    if not evidence.calls and not any(stop.state in TERMINAL for stop in evidence.stops):
        yield f"it is {evidence.row.state}, its model was never called, and it was stopped"


def stopped_in_the_queue_never_calls(evidence: Evidence) -> Iterator[str]:
    """A generation that was stopped before it started never calls its model."""
    if evidence.row.state is State.CANCELLED and evidence.row.seq == 1 and evidence.row.attempt == 1 and evidence.calls:
        yield f"{len(evidence.calls)} calls"


INVARIANTS: Sequence[Invariant] = (
    ends_once, seq_is_dense, terminal_is_last, log_repeats_itself, fence_holds, snapshot_and_rest_are_the_whole,
    texts_are_one, log_is_repaired, text_is_the_upstreams, done_is_true, pages_agree, nothing_is_taken_back,
    model_is_called_once, no_call_is_left_open, stop_means_stop, stopped_in_the_queue_never_calls,
)  # fmt: skip


def broken(evidence: Evidence) -> list[str]:
    """Check all; give each broken promise with its name."""
    who = f"{evidence.asked.gen} ({evidence.asked.model}, {evidence.row.state})"
    return [f"{check.__name__}: {who}: {how}" for check in INVARIANTS for how in _checked(check, evidence)]


def _checked(check: Invariant, evidence: Evidence) -> Iterator[str]:
    try:
        yield from check(evidence)
    except StreamingError as exc:
        yield f"what it found can't even be read: {exc!r}"


def _archived(evidence: Evidence) -> tuple[Event, ...]:
    archive: Archive | None = evidence.archive
    return archive.events if archive else ()


def _log_events(evidence: Evidence) -> list[Event]:
    return [event_of(evidence.asked.gen, one) for one in evidence.entries if one.entry.kind is not Kind.BLOCK]


def _folded(events: Sequence[Event]) -> Snapshot:
    snapshot = Snapshot("")
    for event in events:
        snapshot = fold(snapshot, event)
    return snapshot


def _read_on(gen: str, snapshot: Snapshot, rest: Sequence[Logged]) -> Snapshot:
    for one in rest:
        if one.entry.kind is not Kind.BLOCK:
            snapshot = fold(snapshot, event_of(gen, one))
            continue
        view = view_from_dict(json.loads(one.entry.payload))
        if isinstance(view, BlockView):
            snapshot = fold_view(snapshot, view)
    return snapshot


def _differences(where: str, ours: Snapshot, theirs: Snapshot) -> Iterator[str]:
    # A driver that took over writes its attempt with its first event; until then the claim alone has it.
    if replace(ours, attempt=0) != replace(theirs, attempt=0):
        names = [name for name in Snapshot.__slots__ if getattr(ours, name) != getattr(theirs, name)]
        yield f"{where}: {names} differ: {_difference(ours.text, theirs.text)}"


def _difference(ours: str, theirs: str) -> str:
    """Say where two texts part."""
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    parting = f"{ours[at : at + 30]!r} and {theirs[at : at + 30]!r}"
    return f"{len(ours)} and {len(theirs)} characters, parting at {at}: {parting}"
