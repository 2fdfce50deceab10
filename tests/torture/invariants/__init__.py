"""
What must hold of every generation, whatever was done to the site. Pure.

Each function is one promise; its docstring is the sentence. It yields how the promise was broken. What excuses
an answer is in its evidence, with its time and place: there is no excuse for a whole schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from streaming.errors import StreamingError
from tests.torture.evidence import Evidence
from tests.torture.invariants.calls import (
    model_is_called_once,
    no_call_is_left_open,
    stop_means_stop,
    stopped_in_the_queue_never_calls,
)
from tests.torture.invariants.log import (
    attempts_agree,
    ends_once,
    fence_holds,
    log_is_repaired,
    log_is_whole,
    log_repeats_itself,
    seq_is_dense,
    snapshot_and_rest_are_the_whole,
    terminal_is_last,
)
from tests.torture.invariants.pages import blocks_are_the_texts, nothing_is_taken_back, pages_agree
from tests.torture.invariants.text import (
    done_is_true,
    end_is_explained,
    own_errors_keep_everything,
    text_is_the_upstreams,
    texts_are_one,
    what_was_sent_is_kept,
)

Invariant: TypeAlias = Callable[[Evidence], Iterator[str]]

INVARIANTS: Sequence[Invariant] = (
    ends_once, seq_is_dense, terminal_is_last, log_is_whole, log_repeats_itself, log_is_repaired, fence_holds,
    attempts_agree, snapshot_and_rest_are_the_whole,
    texts_are_one, text_is_the_upstreams, done_is_true, own_errors_keep_everything, what_was_sent_is_kept,
    end_is_explained,
    model_is_called_once, no_call_is_left_open, stop_means_stop, stopped_in_the_queue_never_calls,
    pages_agree, blocks_are_the_texts, nothing_is_taken_back,
)  # fmt: skip
# A committed end that the log misses is written to it within seconds, and a call may take a moment to close.
SOON: Sequence[Invariant] = (log_is_whole, log_is_repaired, no_call_is_left_open)


def broken(evidence: Evidence) -> list[str]:
    """Check all; give each broken promise with its name."""
    who = f"{evidence.asked.gen} ({evidence.asked.model}, {evidence.row.state})"
    return [f"{check.__name__}: {who}: {how}" for check in INVARIANTS for how in _checked(check, evidence)]


def is_waiting(evidence: Evidence) -> bool:
    """Say whether something is not true yet that may come true soon."""
    return any(how for check in SOON for how in _checked(check, evidence))


def _checked(check: Invariant, evidence: Evidence) -> Iterator[str]:
    try:
        yield from check(evidence)
    except StreamingError as exc:
        yield f"what it found can't even be read: {exc!r}"
