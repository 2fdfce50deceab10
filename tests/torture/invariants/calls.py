"""What the upstream's account promises, and what a stop does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from streaming.driver import RETRIES
from streaming.lifecycle import State
from tests.torture.account import Call
from tests.torture.evidence import Evidence
from tests.torture.hurts import Place

# The upstream may end while the request to stop is on its way, and the page hears of its end later.
_CROSSING_MS = 250.0
_TOLERANCE_MS = 60.0
# The longest that a slow way holds a piece back.
_HELD_BACK_MS = 600.0


def model_is_called_once(evidence: Evidence) -> Iterator[str]:
    """An answer calls its model once, in whatever attempts; a call is repeated, twice, before its first piece only."""
    if len(evidence.calls) > 1 + RETRIES:
        yield f"{len(evidence.calls)} calls"
    for earlier, later in pairwise(evidence.calls):
        if earlier.spoke and not _way_was_disturbed(evidence, earlier):
            yield f"call {earlier.n} had begun to speak, and call {later.n} was made"
        is_open = earlier.closed_mono is None or earlier.closed_mono > later.opened_mono + _TOLERANCE_MS
        if is_open and not _way_was_disturbed(evidence, earlier):
            yield f"calls {earlier.n} and {later.n} were open at once"


def no_call_is_left_open(evidence: Evidence) -> Iterator[str]:
    """After the end the upstream has no open call of the generation."""
    if any(call.is_open for call in evidence.calls):
        yield f"{evidence.calls}"


def stop_means_stop(evidence: Evidence) -> Iterator[str]:
    """A stop that was acknowledged ends as cancelled, unless the end was decided before; nobody calls after it."""
    for stop in evidence.stops:
        if stop.status == 200 and stop.state != evidence.row.state:
            yield f"the site said that it is {stop.state}, it is {evidence.row.state}"
    destroyed = max((loss.at_mono for loss in evidence.losses), default=float("-inf"))
    # What recorded the earlier ones may have been destroyed.
    lasting = [stop for stop in evidence.stops if stop.status == 202 and stop.asked_mono > destroyed]
    if not lasting:
        return
    first = min(lasting, key=lambda stop: stop.at_mono)
    # On a way that was silent a request stands still, and arrives although its caller has left.
    late = [
        call.n
        for call in evidence.calls
        if call.opened_mono > first.at_mono + _CROSSING_MS and not _way_was_disturbed(evidence, call)
    ]
    if late:
        yield f"calls {late} were made after the stop was acknowledged"
    if evidence.row.state is not State.CANCELLED:
        yield from _not_decided_before(evidence, first.at)


def stopped_in_the_queue_never_calls(evidence: Evidence) -> Iterator[str]:
    """A generation that was stopped before it started never calls its model."""
    # One that lost everything has no more than its end either.
    is_stopped = evidence.row.state is State.CANCELLED and evidence.row.seq == 1 and not evidence.losses
    if is_stopped and evidence.calls:
        yield f"{len(evidence.calls)} calls"


def _not_decided_before(evidence: Evidence, stopped_at: float) -> Iterator[str]:
    """The product says when it decided; of an answer that is complete the upstream's account says it too."""
    row, late_ms = evidence.row, evidence.ended_at - stopped_at
    if late_ms > _CROSSING_MS:
        yield f"attempt {row.attempt} ended it as {row.state} {late_ms:.0f} ms after the stop was acknowledged"
    open_then = [
        call.n for call in evidence.calls if call.closed_at is None or call.closed_at > stopped_at + _CROSSING_MS
    ]
    if row.state is State.COMPLETED and open_then:
        yield f"completed, though stopped while calls {open_then} were open"


def _way_was_disturbed(evidence: Evidence, call: Call) -> bool:
    """Say whether what was sent in a call, its beginning or its end may have been lost or late on the way."""
    return bool(evidence.felt([Place.WORKER_TO_UPSTREAM], call, _HELD_BACK_MS))
