"""What the text of an answer promises."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from streaming.events import Cancelled, Done, Error, Event
from streaming.lifecycle import State
from streaming.log.ports import LEASE_MS
from streaming.snapshot import fold_all
from tests.torture.account import Call
from tests.torture.evidence import Evidence
from tests.torture.hurts import How, Place
from tests.torture.invariants.telling import difference

# From the upstream's write to the log, on a machine that has much else to do.
_ON_ITS_WAY_MS = 1_000.0
# A service that failed is left alone for a while; longer rests than this are beyond a run.
_REST_MS = 300_000.0
# The last renewal is three seconds old at most, and a driver that comes back needs a moment.
_ABOUT_A_LEASE_MS = LEASE_MS - 4_000.0
_DRIVER = (Place.WORKER, Place.REDIS, Place.WORKER_TO_REDIS)
_DRIVER_AND_UPSTREAM = (*_DRIVER, Place.WORKER_TO_UPSTREAM)


def texts_are_one(evidence: Evidence) -> Iterator[str]:
    """Archive, database and terminal event agree on the text, by code points and by digest."""
    row = evidence.row
    folded = fold_all("", evidence.archived)
    if (folded.text, folded.reasoning) != (row.text, row.reasoning):
        yield f"archive and row differ: {difference(folded.text, row.text)}"
    digest = hashlib.sha256(row.text.encode()).hexdigest()
    if (row.text_length, row.text_sha256) != (len(row.text), digest):
        yield "length or digest of the row do not fit its text"
    match evidence.archived[-1:]:
        case [Event(body=Done(text_sha256=said, text_length=length))] if (said, length) != (digest, len(row.text)):
            yield "length or digest of the terminal event do not fit the text"
        case [Event(body=Cancelled(text_length=length) | Error(text_length=length))] if length != len(row.text):
            yield f"the terminal event says {length} characters, the text has {len(row.text)}"


def text_is_the_upstreams(evidence: Evidence) -> Iterator[str]:
    """Text and reasoning are what the upstream sent in one call, from its first character on: nothing is foreign."""
    row = evidence.row
    if not row.text and not row.reasoning:
        return
    if not evidence.calls:
        yield f"the upstream was never called, and the answer has {len(row.text)} characters"
        return
    call = _nearest(evidence)
    yield from _not_from(evidence, call)
    if len(row.reasoning + row.text) > len(call.sent()):
        yield f"the answer has {len(row.reasoning + row.text)} characters, the upstream sent {len(call.sent())}"


def done_is_true(evidence: Evidence) -> Iterator[str]:
    """Completed means: the upstream said so in the call that the text is from, and every character is there."""
    if evidence.row.state is not State.COMPLETED:
        return
    if not evidence.script.finishes:
        yield "the script never says that it finished"
    finished = [call for call in evidence.calls if call.outcome == "finished"]
    if not finished:
        yield f"the upstream finished none of its calls: {evidence.calls}"
    for call in finished[-1:]:
        yield from _not_whole(evidence, call)


def own_errors_keep_everything(evidence: Evidence) -> Iterator[str]:
    """An answer that fails by the upstream's own doing keeps everything that was sent before."""
    row, script = evidence.row, evidence.script
    if row.state is not State.FAILED or row.error is None or not script.error or row.error["code"] != script.error:
        return
    if not evidence.calls:
        yield f"it failed with {script.error}, and the upstream was never called"
    elif evidence.calls[-1].outcome == "refused":
        if row.text or row.reasoning:
            yield "it has text, and the upstream refused every call"
    else:
        yield from _not_whole(evidence, evidence.calls[-1])


def what_was_sent_is_kept(evidence: Evidence) -> Iterator[str]:
    """What the upstream had sent a second before anything disturbed or stopped the answer is in it."""
    spoken = [call for call in evidence.calls if call.spoke]
    # What was destroyed while no driver was left to write it again is gone.
    if not spoken or (evidence.losses and evidence.is_taken_over):
        return
    call = spoken[-1]
    disturbed = [hurt.began for hurt in evidence.felt(_DRIVER_AND_UPSTREAM, call)]
    stopped = [stop.asked_mono for stop in evidence.stops]
    until = min([*disturbed, *stopped, call.closed_mono or float("inf")])
    sent, kept = call.sent(until - _ON_ITS_WAY_MS), evidence.row.reasoning + evidence.row.text
    if len(kept) < len(sent):
        yield f"{len(kept)} characters are kept, {len(sent)} were sent while nothing disturbed the answer"


def end_is_explained(evidence: Evidence) -> Iterator[str]:
    """An answer that nothing disturbed ends as its model lets it: each other end has a reason that happened."""
    row = evidence.row
    match row.state:
        case State.CANCELLED if not evidence.stops:
            yield "nobody asked it to stop"
        case State.INTERRUPTED if not evidence.losses and not _may_lose_its_driver(evidence):
            yield "no worker ended, and none was away for about as long as a lease"
        case State.FAILED if not _may_fail(evidence):
            yield f"nothing explains {row.error}"


def _may_lose_its_driver(evidence: Evidence) -> bool:
    felt = evidence.hurts.felt(_DRIVER, *evidence.life, evidence.worker)
    ended = any(hurt.place is Place.WORKER and hurt.how is How.ENDED for hurt in felt)
    away = sum(hurt.lasted for hurt in felt if hurt.how is not How.DISTURBED)
    return ended or away > _ABOUT_A_LEASE_MS


def _may_fail(evidence: Evidence) -> bool:
    code = (evidence.row.error or {}).get("code")
    since, until = evidence.life
    if evidence.script.error:
        # The way of those that fail is never disturbed; but they make each other's service rest.
        known = code in (evidence.script.error, "upstream_resting")
        return known or bool(evidence.hurts.felt([Place.WORKER], since, until, evidence.worker))
    earlier = _REST_MS if code == "upstream_resting" else 0.0
    places = (Place.WORKER, Place.WORKER_TO_UPSTREAM)
    return bool(evidence.hurts.felt(places, since - earlier, until, evidence.worker))


def _nearest(evidence: Evidence) -> Call:
    """Give the call that the answer is from; if it is from none, the one that spoke last."""
    fitting = [call for call in evidence.calls if not any(_not_from(evidence, call))]
    spoken = [call for call in evidence.calls if call.spoke]
    return (fitting or spoken or evidence.calls)[-1]


def _not_from(evidence: Evidence, call: Call) -> Iterator[str]:
    for name, ours, theirs in (
        ("text", evidence.row.text, call.text),
        ("reasoning", evidence.row.reasoning, call.reasoning),
    ):
        if not theirs.startswith(ours):
            yield f"{name} is not of call {call.n}: {difference(ours, theirs)}"
    if evidence.row.text and evidence.row.reasoning != call.reasoning:
        yield f"there is text before the whole reasoning: {difference(evidence.row.reasoning, call.reasoning)}"


def _not_whole(evidence: Evidence, call: Call) -> Iterator[str]:
    row = evidence.row
    if (row.reasoning, row.text) != (call.reasoning, call.text):
        yield f"call {call.n}: {difference(row.reasoning + row.text, call.reasoning + call.text)}"
