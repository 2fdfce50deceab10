"""Events, lifecycle and snapshot as pure functions."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import IllegalTransition, ProtocolError, SequenceGap
from streaming.events import (
    BODIES,
    BlockView,
    Body,
    Cancelled,
    Done,
    Error,
    Event,
    ReasoningDelta,
    Resumed,
    Start,
    Step,
    TextDelta,
    ToolComplete,
    ToolDelta,
    ToolResult,
    Usage,
    body_from_dict,
    event_from_dict,
    event_to_dict,
    events_of,
    lines_of,
    view_from_dict,
    view_to_dict,
)
from streaming.lifecycle import TERMINAL, TRANSITIONS, State, advance, promise
from streaming.snapshot import Snapshot, fold, fold_all, fold_view, joined

WORD = st.text(min_size=1, max_size=6).filter(lambda text: text.isprintable())
WORKING = st.one_of(
    WORD.map(TextDelta),
    WORD.map(ReasoningDelta),
    st.builds(ToolDelta, st.sampled_from("ab"), WORD, st.none() | WORD),
    st.builds(ToolComplete, st.sampled_from("ab"), WORD, st.just("{}")),
    st.builds(ToolResult, st.sampled_from("ab"), st.just("succeeded"), WORD),
    st.builds(Step, st.integers(1, 9), WORD),
    st.builds(Usage, st.just("upstream"), st.none() | st.integers(0, 99), st.none() | st.integers(0, 99)),
    st.builds(Resumed, st.just("token_prefix"), st.integers(0, 9), st.integers(0, 9)),
)
ENDS = st.sampled_from(
    [
        Done("stop", "0" * 64, 0, {"ended_at": 1}),
        Cancelled("user", "closed", 3, 0),
        Error("idle_timeout", "Silence.", retryable=True, resumable=False, text_length=0),
        Error("bad_request", "No.", retryable=False, resumable=False, text_length=0, said="nо"),
        Error("driver_lost", "Gone.", retryable=True, resumable=False, text_length=0),
    ]
)
START = Start("smol", "p", {"temperature": 0})


@st.composite
def legal_logs(draw: st.DrawFn) -> list[Event]:
    bodies: list[Body] = [START, *draw(st.lists(WORKING, max_size=15)), *draw(st.lists(ENDS, max_size=1))]
    return [Event("g", 1, seq, seq * 10, body) for seq, body in enumerate(bodies, start=1)]


def folded(events: list[Event], snapshot: Snapshot | None = None) -> Snapshot:
    snapshot = snapshot or Snapshot("g")
    for event in events:
        snapshot = fold(snapshot, event)
    return snapshot


@given(log=legal_logs(), data=st.data())
def test_resuming_from_any_cursor_with_any_overlap_gives_the_same_snapshot(
    log: list[Event], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(log)))
    overlap = data.draw(st.integers(0, cut))
    assert folded(log[cut - overlap :], folded(log[:cut])) == folded(log)


@given(log=legal_logs())
def test_an_event_survives_its_json_form(log: list[Event]) -> None:
    assert [event_from_dict(event_to_dict(event)) for event in log] == log


@given(log=legal_logs())
def test_joining_deltas_changes_no_text(log: list[Event]) -> None:
    bodies = list(joined(event.body for event in log))
    whole = folded([Event("g", 1, seq, 0, body) for seq, body in enumerate(bodies, start=1)])
    known = folded(log)
    assert (whole.text, whole.reasoning, whole.tools, whole.state) == (
        known.text, known.reasoning, known.tools, known.state,
    )  # fmt: skip


@given(log=legal_logs())
def test_folding_all_at_once_gives_what_folding_one_by_one_gives(log: list[Event]) -> None:
    assert fold_all("g", log) == folded(log)


@given(log=legal_logs())
def test_events_survive_their_lines(log: list[Event]) -> None:
    assert events_of(lines_of(log)) == log


def test_a_text_that_holds_line_ends_is_one_line() -> None:
    events = [Event("g", 1, 1, 0, TextDelta("a\u2028b\x85c\r\nd"))]
    assert lines_of(events).count("\n") == 0
    assert events_of(lines_of(events)) == events


def test_a_gap_is_refused_with_what_was_expected() -> None:
    with pytest.raises(SequenceGap) as refused:
        fold(Snapshot("g"), Event("g", 1, 2, 0, TextDelta("x")))
    assert (refused.value.expected, refused.value.got) == (1, 2)


SAMPLES: dict[type[Any], Body] = {
    Start: START,
    TextDelta: TextDelta("a"),
    ReasoningDelta: ReasoningDelta("a"),
    ToolDelta: ToolDelta("c", "{"),
    ToolComplete: ToolComplete("c", "f", "{}"),
    ToolResult: ToolResult("c", "failed", ""),
    Step: Step(2, "after tools"),
    Usage: Usage("estimated"),
    Resumed: Resumed("token_prefix", 1, 1),
    Done: Done("stop", "0" * 64, 0),
    Cancelled: Cancelled("user", "closed", 0, 0),
    Error: Error("x", "y", retryable=False, resumable=False, text_length=0),
}


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("kind", BODIES.values())
def test_the_whole_square_of_states_and_events(state: State, kind: type[Any]) -> None:
    if kind in TRANSITIONS[state]:
        assert advance(state, SAMPLES[kind]) in State
    else:
        with pytest.raises(IllegalTransition):
            advance(state, SAMPLES[kind])


def test_only_done_completes_and_nothing_leaves_a_terminal_state() -> None:
    assert [kind for row in TRANSITIONS.values() for kind, after in row.items() if after is State.COMPLETED] == [Done]
    assert all(TRANSITIONS[state] == {} for state in TERMINAL)
    assert all(TRANSITIONS[state] for state in State if state not in TERMINAL)


def test_a_lost_driver_interrupts_and_other_errors_fail() -> None:
    lost = Error("driver_lost", "", retryable=True, resumable=False, text_length=0)
    assert advance(State.RUNNING, lost) is State.INTERRUPTED
    assert advance(State.RUNNING, SAMPLES[Error]) is State.FAILED


def test_what_is_promised_of_each_state() -> None:
    assert {state: promise(state) for state in State} == {
        State.QUEUED: "replayable",
        State.RUNNING: "replayable",
        State.AWAITING_APPROVAL: "replayable",
        State.COMPLETED: "completed",
        State.CANCELLED: "cancelled",
        State.FAILED: "replayable",
        State.INTERRUPTED: "replayable",
    }
    assert promise(State.INTERRUPTED, unsettled_side_effect=True) == "unknown"


def test_every_event_type_is_in_the_union_and_has_a_sample() -> None:
    assert set(get_args(Body)) == set(BODIES.values()) == set(SAMPLES)
    assert all(dataclasses.is_dataclass(kind) for kind in BODIES.values())


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("nonsense", {}),
        ("text_delta", {}),
        ("text_delta", {"text": ""}),
        ("text_delta", {"text": "a", "more": 1}),
        ("done", {"finish": "stop"}),
    ],
)
def test_what_is_no_event_is_refused(kind: str, data: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        body_from_dict(kind, data)


@pytest.mark.parametrize("change", [{"v": 2}, {"v": None}, {"type": None}, {"more": 1}])
def test_an_envelope_of_another_shape_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        event_from_dict({**event_to_dict(Event("g", 1, 1, 0, START)), **change})


def test_a_view_survives_its_json_form_and_an_unknown_one_is_refused() -> None:
    view = BlockView("g", 3, 0, "<p>a</p>", sealed=True, length=1)
    assert view_from_dict(view_to_dict(view)) == view
    with pytest.raises(ProtocolError):
        view_from_dict({"v": 1, "type": "vision"})


def test_an_older_view_changes_nothing() -> None:
    newer = fold_view(Snapshot("g", text="abc"), BlockView("g", 5, 1, "<p>b</p>", sealed=False, length=3))
    assert fold_view(newer, BlockView("g", 4, 0, "<p>old</p>", sealed=False, length=1)) == newer
    assert (newer.blocks[0].html, newer.shown) == ("", 3)
