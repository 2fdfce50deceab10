"""What is wrong with log, archive and row is noticed; the truth passes."""

from __future__ import annotations

from dataclasses import replace

from streaming.events import Body, Start, TextDelta
from streaming.lifecycle import State
from streaming.log.ports import Lease
from tests.torture.evidence import Evidence, Lost
from tests.torture.invariants import INVARIANTS, broken
from tests.torture.making import (
    ENDED_AT,
    START,
    TEXT,
    archived,
    done,
    failed,
    logged,
    lost,
    names_broken,
    story,
    whole,
)

TRUTH = whole()


def with_row(**changes: object) -> Evidence:
    return replace(TRUTH, row=replace(TRUTH.row, **changes))  # type: ignore[arg-type]


def with_events(*bodies: Body) -> Evidence:
    entries = logged(bodies)
    return replace(TRUTH, entries=entries, archive=archived(entries), samples=(), seen=())


def test_the_truth_breaks_no_promise() -> None:
    assert broken(TRUTH) == []


def test_every_promise_is_a_sentence() -> None:
    assert all(check.__doc__ and check.__doc__.endswith(".") for check in INVARIANTS)


def test_a_generation_without_an_end_is_noticed() -> None:
    assert "ends_once" in names_broken(with_row(state=State.RUNNING))


def test_a_missing_archive_is_noticed() -> None:
    assert "ends_once" in names_broken(replace(TRUTH, archive=None))


def test_a_missing_log_is_noticed() -> None:
    assert names_broken(replace(TRUTH, lease=None)) == {"log_is_whole"}


def test_a_log_without_its_entries_is_noticed() -> None:
    assert "log_is_whole" in names_broken(replace(TRUTH, entries=(), samples=()))


def test_a_log_that_was_destroyed_while_its_driver_lived_is_written_again() -> None:
    assert "log_is_whole" in names_broken(replace(TRUTH, lease=None, losses=lost(Lost.STATE)))
    assert "log_is_whole" not in names_broken(
        replace(TRUTH, lease=None, losses=lost(Lost.STATE, at=ENDED_AT + 1_000.0))
    )


def test_an_answer_told_again_from_its_snapshot_was_taken_over_whatever_its_events_call_their_attempt() -> None:
    queued_at = 1_000
    end = replace(done(TEXT), timings={"queued_at": queued_at, "ended_at": 2_000})
    told = story([START, TextDelta(TEXT), end], attempt=2)
    assert not told.is_taken_over
    assert told.archive is not None
    again = tuple(replace(event, at=queued_at) for event in told.archive.events)
    assert replace(told, archive=replace(told.archive, events=again)).is_taken_over


def test_a_hole_in_the_seqs_is_noticed() -> None:
    hole = TRUTH.entries[:4] + TRUTH.entries[5:]
    evidence = replace(TRUTH, entries=hole, archive=archived(hole))
    assert {"seq_is_dense", "log_repeats_itself", "log_is_whole"} <= names_broken(evidence)


def test_an_archive_that_was_changed_is_noticed() -> None:
    assert TRUTH.archive is not None
    changed = replace(TRUTH.archive, lines=TRUTH.archive.lines + " ")
    assert names_broken(replace(TRUTH, archive=changed)) == {"seq_is_dense"}


def test_an_event_after_the_end_is_noticed() -> None:
    assert "terminal_is_last" in names_broken(with_events(START, TextDelta(TEXT), done(TEXT), TextDelta("!")))


def test_two_ends_are_noticed() -> None:
    two = with_events(START, TextDelta(TEXT), done(TEXT), failed("driver_lost", TEXT))
    assert "terminal_is_last" in names_broken(two)


def test_a_fenced_drivers_write_is_noticed() -> None:
    newer = logged([TextDelta("x")], attempt=2)
    assert "fence_holds" in names_broken(replace(TRUTH, entries=(*newer, *TRUTH.entries)))


def test_a_row_that_a_fenced_driver_wrote_is_noticed() -> None:
    assert "attempts_agree" in names_broken(with_row(attempt=2))
    assert "attempts_agree" in names_broken(replace(TRUTH, lease=Lease(State.COMPLETED, 0, 0, 0)))


def test_a_repetition_that_differs_is_noticed() -> None:
    other = logged([Start("count-slow", "another pane")])
    assert "log_repeats_itself" in names_broken(replace(TRUTH, entries=(*other, *TRUTH.entries)))


def test_a_snapshot_that_does_not_fit_its_cursor_is_noticed() -> None:
    (sample,) = TRUTH.samples
    late = replace(sample, cursor=TRUTH.entries[-3].cursor)
    assert names_broken(replace(TRUTH, samples=(late,))) == {"snapshot_and_rest_are_the_whole"}


def test_a_log_without_the_end_is_noticed() -> None:
    assert names_broken(replace(TRUTH, lease=Lease(State.RUNNING, 1, 0, 0))) == {"log_is_repaired"}


def test_a_row_whose_digest_is_wrong_is_noticed() -> None:
    assert names_broken(with_row(text_sha256="0" * 64)) == {"texts_are_one"}
