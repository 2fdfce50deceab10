"""What is wrong with a text is noticed, wherever it stands, and only what happened excuses it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.events import Cancelled, TextDelta
from tests.torture.evidence import Evidence
from tests.torture.hurts import How, Place
from tests.torture.invariants import broken
from tests.torture.making import (
    ASKED,
    CALL,
    ENDED,
    OPENED,
    SCRIPT,
    START,
    TEXT,
    TIMINGS,
    cut_off,
    done,
    failed,
    hurt,
    names_broken,
    stopped,
    story,
    whole,
)
from tests.torture.scripts import ALL

TRUTH = whole()
PLACES = st.integers(0, len(TEXT) - 1)


def with_text(text: str) -> Evidence:
    """Everybody agrees on another text."""
    return replace(story([START, TextDelta(text), done(text)]), calls=TRUTH.calls)


def cancelled(text: str) -> Evidence:
    """A stop ended it, half a second after the call was opened."""
    end = Cancelled("guest", "closed", 5, len(text), TIMINGS)
    return replace(cut_off(text, end), stops=(stopped(at=500.0),))


@given(place=PLACES)
def test_one_lost_character_is_noticed(place: int) -> None:
    shorter = TEXT[:place] + TEXT[place + 1 :]
    assert {"done_is_true"} <= names_broken(with_text(shorter))


@given(place=PLACES)
def test_one_doubled_character_is_noticed(place: int) -> None:
    longer = TEXT[: place + 1] + TEXT[place:]
    assert {"text_is_the_upstreams"} <= names_broken(with_text(longer))


@pytest.mark.parametrize(
    "foreign",
    [SCRIPT.text("p1", 8), SCRIPT.text("p2", 8), ALL["count"].text("p1", 9)],
    ids=["of another call", "of another prompt", "of another pane"],
)
def test_text_of_another_answer_is_noticed_also_where_it_stands_at_its_own_place(foreign: str) -> None:
    spliced = TEXT[:60] + foreign[60 : len(TEXT)]
    assert "text_is_the_upstreams" in names_broken(with_text(spliced))


def test_two_calls_spliced_together_are_noticed_though_both_were_made() -> None:
    again = replace(TRUTH.calls[0], n=8, opened_mono=ENDED + 100.0, closed_mono=ENDED + 8_000.0)
    spliced = TEXT[:60] + SCRIPT.text("p1", 8)[60:]
    evidence = replace(with_text(spliced), calls=(*TRUTH.calls, again), hurts=hurt(Place.WORKER_TO_UPSTREAM))
    assert {"text_is_the_upstreams", "done_is_true"} <= names_broken(evidence)


def test_more_than_the_upstream_sent_is_noticed() -> None:
    call = replace(TRUTH.calls[0], frames=5)
    assert "text_is_the_upstreams" in names_broken(replace(TRUTH, calls=(call,)))


def test_an_answer_without_a_call_is_noticed() -> None:
    assert {"text_is_the_upstreams", "done_is_true"} == names_broken(replace(TRUTH, calls=()))


@pytest.mark.parametrize("outcome", ["aborted", "cut", "reset", "reported", "refused"])
def test_a_completion_that_the_upstream_never_said_is_noticed(outcome: str) -> None:
    call = replace(TRUTH.calls[0], outcome=outcome)
    assert names_broken(replace(TRUTH, calls=(call,))) == {"done_is_true"}


@pytest.mark.parametrize("kept", ["", TEXT[:30]])
def test_text_that_is_missing_from_a_cancelled_answer_is_noticed(kept: str) -> None:
    late = replace(cancelled(kept), stops=(stopped(at=6_500.0),)) if kept else replace(
        story([START, Cancelled("guest", "closed", 5, 0, TIMINGS)]), calls=TRUTH.calls, stops=(stopped(at=6_500.0),)
    )  # fmt: skip
    assert names_broken(late) == {"what_was_sent_is_kept"}


def test_a_cancelled_answer_may_lack_what_came_after_the_stop() -> None:
    assert broken(cancelled(TEXT[:30])) == []


def test_a_killed_worker_excuses_only_what_was_sent_after_the_blow() -> None:
    early, late = (hurt(Place.WORKER, OPENED + after, how=How.ENDED) for after in (500.0, 6_500.0))
    interrupted = cut_off(TEXT[:10], failed("driver_lost", TEXT[:10]), attempt=2)
    assert broken(replace(interrupted, hurts=early)) == []
    assert names_broken(replace(interrupted, hurts=late)) == {"what_was_sent_is_kept"}


def test_another_workers_death_excuses_nothing() -> None:
    interrupted = cut_off(TEXT[:10], failed("driver_lost", TEXT[:10]), attempt=2)
    other = hurt(Place.WORKER, OPENED + 500.0, number=1, how=How.ENDED)
    assert names_broken(replace(interrupted, hurts=other)) == {"what_was_sent_is_kept", "end_is_explained"}


def test_an_error_of_the_upstreams_own_keeps_every_character() -> None:
    script, asked = ALL["error-midway"], replace(ASKED, model="error-midway")
    call = replace(CALL, script="error-midway", outcome="reported", frames=1_000, opened_mono=ENDED - 100.0)
    for text, expected in ((call.text, set()), (call.text[:-3], {"own_errors_keep_everything"})):
        told = story([START, TextDelta(text), failed(script.error, text)], call)
        assert names_broken(replace(told, asked=asked)) == expected


@pytest.mark.parametrize("code", ["idle_timeout", "connection_lost", "upstream_resting"])
def test_a_failure_that_nothing_explains_is_noticed(code: str) -> None:
    assert "end_is_explained" in names_broken(cut_off(TEXT, failed(code, TEXT)))


def test_a_failure_is_explained_by_what_was_done_to_its_way() -> None:
    evidence = replace(cut_off(TEXT, failed("connection_lost", TEXT)), hurts=hurt(Place.WORKER_TO_UPSTREAM))
    assert broken(evidence) == []


def test_a_cancellation_that_nobody_asked_for_is_noticed() -> None:
    assert "end_is_explained" in names_broken(replace(cancelled(TEXT), stops=()))


@pytest.mark.parametrize(
    ("place", "how", "lasted", "is_explained"),
    [
        (Place.WORKER, How.ENDED, 0.0, True),
        (Place.WORKER, How.AWAY, 13_000.0, True),
        (Place.WORKER_TO_REDIS, How.AWAY, 7_000.0, True),
        (Place.WORKER, How.AWAY, 2_000.0, False),
        (Place.WORKER_TO_REDIS, How.DISTURBED, 0.0, False),
        (Place.REDIS, How.ENDED, 2_000.0, False),
        (Place.WEB, How.ENDED, 20_000.0, False),
    ],
)
def test_an_interruption_is_explained_only_by_what_loses_a_driver(
    place: Place, how: How, lasted: float, is_explained: bool
) -> None:
    evidence = replace(cut_off(TEXT, failed("driver_lost", TEXT)), hurts=hurt(place, how=how, lasted=lasted))
    assert ("end_is_explained" not in names_broken(evidence)) is is_explained


def test_an_interruption_that_nothing_explains_is_noticed() -> None:
    assert "end_is_explained" in names_broken(cut_off(TEXT, failed("driver_lost", TEXT)))
