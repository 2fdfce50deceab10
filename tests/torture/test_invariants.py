"""The checkers themselves: each lets the truth pass, and notices the lie it is for."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.events import Body, Error, Start, TextDelta
from streaming.lifecycle import State
from streaming.upstream.script import pieces
from tests.torture.evidence import Call, Evidence, Harm
from tests.torture.faults import WEIGHTS
from tests.torture.invariants import INVARIANTS, broken
from tests.torture.making import TEXT, archived, done, logged, whole
from tests.torture.person import Stop
from tests.torture.plan import plan_of
from tests.torture.scripts import ALL, COUNTING

TRUTH = whole()
PLACES = st.integers(0, len(TEXT) - 1)


def names_broken(evidence: Evidence) -> set[str]:
    return {line.split(":")[0] for line in broken(evidence)}


def with_text(text: str) -> Evidence:
    """Everybody agrees on another text."""
    bodies: list[Body] = [Start("count-slow", "pane"), TextDelta(text), done(text)]
    entries = logged(bodies)
    row = replace(TRUTH.row, seq=3, text=text, text_length=len(text), text_sha256=done(text).text_sha256)
    return replace(TRUTH, row=row, archive=archived(entries), entries=entries, logged=None, samples=(), seen=())


def with_events(*bodies: Body) -> Evidence:
    entries = logged(bodies)
    return replace(TRUTH, entries=entries, archive=archived(entries), logged=None, samples=(), seen=())


def with_row(**changes: object) -> Evidence:
    return replace(TRUTH, row=replace(TRUTH.row, **changes))  # type: ignore[arg-type]


def test_the_truth_breaks_no_promise() -> None:
    assert broken(TRUTH) == []


def test_every_promise_is_a_sentence() -> None:
    assert all(check.__doc__ and check.__doc__.endswith(".") for check in INVARIANTS)


@given(place=PLACES)
def test_one_lost_character_is_noticed(place: int) -> None:
    shorter = TEXT[:place] + TEXT[place + 1 :]
    assert {"done_is_true"} <= names_broken(with_text(shorter))


@given(place=PLACES)
def test_one_doubled_character_is_noticed(place: int) -> None:
    longer = TEXT[: place + 1] + TEXT[place:]
    assert {"text_is_the_upstreams"} <= names_broken(with_text(longer))


def test_another_answers_text_is_noticed() -> None:
    assert "text_is_the_upstreams" in names_broken(with_text(TEXT.replace("p1", "p2")))


def test_more_than_the_upstream_sent_is_noticed() -> None:
    call = replace(TRUTH.calls[0], frames=5)
    assert "text_is_the_upstreams" in names_broken(replace(TRUTH, calls=(call,)))


def test_a_completion_that_the_upstream_never_said_is_noticed() -> None:
    call = replace(TRUTH.calls[0], outcome="aborted")
    assert names_broken(replace(TRUTH, calls=(call,))) == {"done_is_true"}


def test_a_generation_without_an_end_is_noticed() -> None:
    assert "ends_once" in names_broken(with_row(state=State.RUNNING))


def test_a_missing_archive_is_noticed() -> None:
    assert "ends_once" in names_broken(replace(TRUTH, archive=None))


def test_a_hole_in_the_seqs_is_noticed() -> None:
    hole = TRUTH.entries[:4] + TRUTH.entries[5:]
    assert {"seq_is_dense", "log_repeats_itself"} <= names_broken(replace(TRUTH, entries=hole, archive=archived(hole)))


def test_an_archive_that_was_changed_is_noticed() -> None:
    assert TRUTH.archive is not None
    changed = replace(TRUTH.archive, lines=TRUTH.archive.lines + " ")
    assert names_broken(replace(TRUTH, archive=changed)) == {"seq_is_dense"}


def test_an_event_after_the_end_is_noticed() -> None:
    late = with_events(Start("count-slow", "pane"), TextDelta(TEXT), done(TEXT), TextDelta("!"))
    assert "terminal_is_last" in names_broken(late)


def test_two_ends_are_noticed() -> None:
    lost = Error("driver_lost", "gone", retryable=True, resumable=False, text_length=len(TEXT))
    assert "terminal_is_last" in names_broken(
        with_events(Start("count-slow", "pane"), TextDelta(TEXT), done(TEXT), lost)
    )


def test_a_fenced_drivers_write_is_noticed() -> None:
    newer = logged([TextDelta("x")], attempt=2)
    assert "fence_holds" in names_broken(replace(TRUTH, entries=(*newer, *TRUTH.entries)))


def test_a_repetition_that_differs_is_noticed() -> None:
    other = logged([Start("count-slow", "another pane")])
    assert "log_repeats_itself" in names_broken(replace(TRUTH, entries=(*other, *TRUTH.entries)))


def test_a_snapshot_that_does_not_fit_its_cursor_is_noticed() -> None:
    (sample,) = TRUTH.samples
    late = replace(sample, cursor=TRUTH.entries[-3].cursor)
    assert names_broken(replace(TRUTH, samples=(late,))) == {"snapshot_and_rest_are_the_whole"}


def test_a_log_without_the_end_is_noticed() -> None:
    assert TRUTH.logged is not None
    behind = replace(TRUTH.logged, state=State.RUNNING)
    assert "log_is_repaired" in names_broken(replace(TRUTH, logged=behind, samples=()))


def test_a_row_whose_digest_is_wrong_is_noticed() -> None:
    assert names_broken(with_row(text_sha256="0" * 64)) == {"texts_are_one"}


@pytest.mark.parametrize(
    "lie",
    [{"text": TEXT[:-1]}, {"state": State.RUNNING}, {"shown": 3}],
    ids=["less text", "no end", "fewer characters as blocks"],
)
def test_a_page_that_shows_something_else_is_noticed(lie: dict[str, object]) -> None:
    (seen,) = TRUTH.seen
    other = replace(seen, snapshot=replace(seen.snapshot, **lie))  # type: ignore[arg-type]
    assert names_broken(replace(TRUTH, seen=(other,))) == {"pages_agree"}


def test_a_page_that_once_showed_a_false_end_is_noticed() -> None:
    (seen,) = TRUTH.seen
    assert names_broken(replace(TRUTH, seen=(replace(seen, first_end=State.FAILED),))) == {"pages_agree"}


def test_text_that_was_taken_back_is_noticed() -> None:
    (seen,) = TRUTH.seen
    assert names_broken(replace(TRUTH, seen=(replace(seen, longest=TEXT + "!"),))) == {"nothing_is_taken_back"}


def test_a_second_call_of_one_attempt_is_noticed() -> None:
    again = Call("aborted", 9, 6_000.0, 7_000.0, 2_000.0)
    assert names_broken(replace(TRUTH, calls=(*TRUTH.calls, again))) == {"model_is_called_once"}


def test_a_retry_before_the_first_piece_is_no_second_call() -> None:
    refused = Call("finished", 0, -20.0, -10.0, 900.0)
    assert broken(replace(TRUTH, calls=(refused, *TRUTH.calls))) == []


def test_two_calls_at_once_are_noticed_in_whatever_attempts() -> None:
    again = Call("aborted", 9, 4_000.0, 7_000.0, 2_000.0)
    twice = replace(TRUTH, row=replace(TRUTH.row, attempt=2), calls=(*TRUTH.calls, again))
    assert names_broken(twice) == {"model_is_called_once"}


def test_a_call_that_is_left_open_is_noticed() -> None:
    call = replace(TRUTH.calls[0], outcome="open", closed_mono=None, closed_at=None)
    assert "no_call_is_left_open" in names_broken(replace(TRUTH, calls=(call,)))


def test_a_stop_that_changed_nothing_is_noticed() -> None:
    stop = Stop(TRUTH.asked.gen, 0.0, 500.0, 202, "running")
    assert names_broken(replace(TRUTH, stops=(stop,))) == {"stop_means_stop"}


def test_a_stop_that_came_after_the_end_need_not_change_anything() -> None:
    stop = Stop(TRUTH.asked.gen, 1_500.0, 1_500.0, 200, "completed")
    assert broken(replace(TRUTH, stops=(stop,))) == []


def test_a_call_of_what_was_stopped_in_the_queue_is_noticed() -> None:
    assert "stopped_in_the_queue_never_calls" in names_broken(with_row(state=State.CANCELLED, seq=1))


def test_text_that_the_suite_destroyed_may_be_missing_when_no_driver_was_left() -> None:
    shorter = with_text(TEXT[:10])
    row = replace(shorter.row, state=State.INTERRUPTED)
    lost = replace(shorter, row=row, seen=TRUTH.seen, harm=Harm(wiped=True))
    assert "nothing_is_taken_back" not in names_broken(lost)


def test_a_seed_gives_the_same_schedule_every_time() -> None:
    assert plan_of(7, 20) == plan_of(7, 20)


def test_every_fault_is_drawn_by_some_seed() -> None:
    drawn = {blow.fault for seed in range(200) for blow in plan_of(seed, 4).blows}
    assert drawn == {fault.__name__ for fault in WEIGHTS}


def test_the_panes_of_a_turn_have_models_of_their_own() -> None:
    turns = [turn for seed in range(50) for talk in plan_of(seed, 20).talks for turn in talk.turns]
    assert all(len(set(turn)) == len(turn) for turn in turns)


@pytest.mark.parametrize("script", COUNTING, ids=lambda script: script.name)
def test_a_counting_script_lasts_some_seconds(script: object) -> None:
    assert script in ALL.values()
    assert 2 < script.seconds < 12  # type: ignore[attr-defined]


def test_pieces_are_the_text() -> None:
    script = Random(1).choice(COUNTING)
    assert "".join(pieces(script.text("x"))) == script.text("x")
