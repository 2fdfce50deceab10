"""A model that is called twice, or in vain, is noticed; so is a stop that does not stop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streaming.events import Cancelled, TextDelta
from streaming.lifecycle import State
from tests.torture.evidence import Lost
from tests.torture.hurts import How, Place
from tests.torture.invariants import broken
from tests.torture.making import (
    CALL,
    ENDED,
    OPENED,
    START,
    TEXT,
    TIMINGS,
    cut_off,
    done,
    failed,
    hurt,
    lost,
    names_broken,
    stopped,
    story,
    whole,
)

TRUTH = whole()


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_second_call_is_noticed_in_whatever_attempt(attempt: int) -> None:
    again = replace(TRUTH.calls[0], n=8, opened_mono=ENDED + 1_000.0, closed_mono=ENDED + 2_000.0)
    evidence = replace(story([START, TextDelta(TEXT), done(TEXT)], attempt=attempt), calls=(TRUTH.calls[0], again))
    assert "model_is_called_once" in names_broken(evidence)


def test_a_second_call_is_excused_only_by_what_disturbed_the_first() -> None:
    first = replace(TRUTH.calls[0], n=6, outcome="aborted", closed_mono=OPENED + 2_000.0)
    second = replace(TRUTH.calls[0], opened_mono=OPENED + 2_500.0)
    twice = replace(TRUTH, calls=(first, second))
    for hurts, is_excused in (
        (hurt(Place.WORKER_TO_UPSTREAM), True),
        (hurt(Place.WORKER_TO_UPSTREAM, OPENED - 1_000.0), False),
        (hurt(Place.WORKER_TO_UPSTREAM, OPENED + 3_000.0), False),
        (hurt(Place.WORKER_TO_UPSTREAM, number=1), False),
        (hurt(Place.REDIS), False),
    ):
        assert ("model_is_called_once" in names_broken(replace(twice, hurts=hurts))) is not is_excused


def test_a_retry_before_the_first_piece_is_no_second_call() -> None:
    refused = replace(CALL, n=6, outcome="refused", opened_mono=OPENED - 20.0, closed_mono=OPENED - 10.0)
    assert broken(replace(TRUTH, calls=(refused, *TRUTH.calls))) == []


def test_two_calls_at_once_are_noticed() -> None:
    silent = replace(CALL, n=6, outcome="aborted", opened_mono=OPENED - 20.0)
    assert names_broken(replace(TRUTH, calls=(silent, *TRUTH.calls))) == {"model_is_called_once"}


def test_a_call_that_is_left_open_is_noticed() -> None:
    call = replace(TRUTH.calls[0], outcome="open", closed_mono=None, closed_at=None)
    assert "no_call_is_left_open" in names_broken(replace(TRUTH, calls=(call,)))


def test_a_stop_that_changed_nothing_is_noticed() -> None:
    assert names_broken(replace(TRUTH, stops=(stopped(at=500.0),))) == {"stop_means_stop"}


@pytest.mark.parametrize("code", ["driver_lost", "connection_lost"])
def test_a_stop_is_not_answered_by_another_end(code: str) -> None:
    hurts = hurt(Place.WORKER, OPENED + 400.0, how=How.ENDED)
    other = replace(cut_off(TEXT[:10], failed(code, TEXT[:10])), stops=(stopped(at=500.0),), hurts=hurts)
    assert names_broken(other) == {"stop_means_stop"}
    # Its record may be among what was destroyed after it was acknowledged.
    assert "stop_means_stop" not in names_broken(replace(other, losses=lost(Lost.STATE)))


def test_a_call_after_an_acknowledged_stop_is_noticed() -> None:
    again = replace(CALL, n=8, outcome="aborted", frames=0, opened_mono=OPENED + 900.0, closed_mono=OPENED + 950.0)
    first = replace(CALL, outcome="refused", closed_mono=OPENED)
    end = Cancelled("guest", "closed", 5, 0, TIMINGS)
    evidence = replace(story([START, end]), calls=(first, again), stops=(stopped(at=500.0),))
    assert names_broken(evidence) == {"stop_means_stop"}
    # A request that stood still on a silent way may arrive although its caller has left.
    silent = hurt(Place.WORKER_TO_UPSTREAM, OPENED + 400.0, how=How.AWAY, lasted=500.0)
    assert broken(replace(evidence, hurts=silent)) == []


def test_a_stop_that_came_after_the_end_need_not_change_anything() -> None:
    after = ENDED - OPENED + 500.0
    assert broken(replace(TRUTH, stops=(stopped(after, 200, State.COMPLETED),))) == []
    assert names_broken(replace(TRUTH, stops=(stopped(after, 200, State.CANCELLED),))) == {"stop_means_stop"}


def test_a_call_of_what_was_stopped_in_the_queue_is_noticed() -> None:
    assert "stopped_in_the_queue_never_calls" in names_broken(
        replace(TRUTH, row=replace(TRUTH.row, state=State.CANCELLED, seq=1))
    )
