from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streaming.upstream.breaker import (
    FAILURES_TO_REST,
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    UNWELL,
    Breaker,
    Rest,
    in_words,
    resting,
)
from streaming.upstream.faults import FAULTS

NOON = 12 * 3600.0


def failing(breaker: Breaker, times: int, now: float = NOON) -> Breaker:
    for _ in range(times):
        breaker.failed("connect_refused", now, admitted_at=now)
    return breaker


def rested() -> Breaker:
    return failing(Breaker(), FAILURES_TO_REST)


def test_a_service_is_called_until_it_has_failed_several_times_in_a_row() -> None:
    assert failing(Breaker(), FAILURES_TO_REST - 1).admit(NOON) is None


def test_a_service_that_keeps_failing_rests() -> None:
    assert rested().admit(NOON) == Rest(NOON, NOON + FIRST_PAUSE_S, "connect_refused")


def test_one_success_forgives_all_failures_before_it() -> None:
    breaker = failing(Breaker(), FAILURES_TO_REST - 1)
    breaker.succeeded()
    assert failing(breaker, FAILURES_TO_REST - 1).rest is None


def test_after_the_rest_one_call_probes_and_the_others_still_rest() -> None:
    breaker, later = rested(), NOON + FIRST_PAUSE_S
    assert breaker.admit(later) is None
    assert breaker.admit(later) is not None


def test_a_probe_that_never_ends_does_not_keep_others_away_for_ever() -> None:
    breaker, later = rested(), NOON + FIRST_PAUSE_S
    breaker.admit(later)
    assert breaker.admit(later + FIRST_PAUSE_S) is None


def test_a_probe_that_succeeds_ends_the_rest() -> None:
    breaker = rested()
    breaker.admit(NOON + FIRST_PAUSE_S)
    breaker.succeeded()
    assert breaker.admit(NOON + FIRST_PAUSE_S) is None


def test_a_probe_that_fails_makes_the_next_rest_twice_as_long() -> None:
    breaker, later = rested(), NOON + FIRST_PAUSE_S
    breaker.admit(later)
    breaker.failed("overloaded", later + 1, admitted_at=later)
    assert breaker.rest == Rest(NOON, later + 1 + 2 * FIRST_PAUSE_S, "overloaded")


def test_a_call_from_before_the_rest_does_not_prolong_it() -> None:
    breaker = rested()
    before = breaker.rest
    breaker.failed("connect_refused", NOON + 3, admitted_at=NOON - 1)
    assert breaker.rest == before


def test_a_service_that_says_how_long_it_needs_is_believed() -> None:
    breaker = failing(Breaker(), FAILURES_TO_REST - 1)
    breaker.failed("overloaded", NOON, admitted_at=NOON, retry_after_s=60)
    assert breaker.rest is not None
    assert breaker.rest.until == NOON + 60


def test_it_is_said_since_when_and_until_when() -> None:
    error = resting(Rest(NOON - 60, NOON + 30, "overloaded"), NOON)
    assert (error.code, error.retryable, error.retry_after_s) == ("upstream_resting", True, 30)
    assert "failing since 11:59 and is left alone until 12:00:30 UTC" in error.message


def test_the_catalogue_counts_the_seconds() -> None:
    assert in_words(Rest(NOON - 60, NOON + 30, "overloaded"), NOON) == "Failing since 11:59 UTC, next try in 30 s."


def test_every_code_of_an_unwell_service_exists() -> None:
    assert set(FAULTS) >= UNWELL


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1000)), max_size=200))
def test_whatever_happens_no_rest_is_longer_than_the_longest(steps: list[tuple[bool, float]]) -> None:
    breaker, now = Breaker(), NOON
    for succeeds, wait in steps:
        now += wait
        if breaker.admit(now) is None:
            if succeeds:
                breaker.succeeded()
            else:
                breaker.failed("connect_refused", now, admitted_at=now, retry_after_s=wait * 10)
        assert breaker.rest is None or breaker.rest.until - now <= LONGEST_PAUSE_S
