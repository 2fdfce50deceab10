"""What may follow what: the only place that knows. The diagram in README.md is checked against it."""

from __future__ import annotations

from enum import StrEnum

from streaming.errors import IllegalTransition
from streaming.events import (
    Body,
    Cancelled,
    Done,
    Error,
    ReasoningDelta,
    Resumed,
    Start,
    Step,
    TextDelta,
    ToolComplete,
    ToolDelta,
    ToolResult,
    Usage,
)


class State(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    AWAITING_APPROVAL = "awaiting_approval"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


DRIVER_LOST = "driver_lost"
TERMINAL = frozenset({State.COMPLETED, State.CANCELLED, State.FAILED, State.INTERRUPTED})
LIVE = frozenset(State) - TERMINAL

_WORKING: dict[type[Body], State] = {
    TextDelta: State.RUNNING,
    ReasoningDelta: State.RUNNING,
    ToolDelta: State.RUNNING,
    ToolComplete: State.RUNNING,
    ToolResult: State.RUNNING,
    Step: State.RUNNING,
    Usage: State.RUNNING,
    Resumed: State.RUNNING,
}
_ENDING: dict[type[Body], State] = {Cancelled: State.CANCELLED, Error: State.FAILED}

# An Error whose code is driver_lost leads to INTERRUPTED instead of FAILED; `advance` applies it.
TRANSITIONS: dict[State, dict[type[Body], State]] = {
    State.QUEUED: {Start: State.RUNNING, **_ENDING},
    State.RUNNING: {**_WORKING, **_ENDING, Done: State.COMPLETED},
    # The events that lead into and out of approval come with the tools issue.
    State.AWAITING_APPROVAL: {ToolResult: State.RUNNING, Resumed: State.RUNNING, **_ENDING},
    State.COMPLETED: {},
    State.CANCELLED: {},
    State.FAILED: {},
    State.INTERRUPTED: {},
}


def advance(state: State, body: Body) -> State:
    """
    Give the state after `body`.

    Raises:
        IllegalTransition: the table has no row for it; the state does not move.
    """
    after = TRANSITIONS[state].get(type(body))
    if after is None:
        raise IllegalTransition(f"{body.type} may not follow in state {state}")
    if isinstance(body, Error) and body.code == DRIVER_LOST:
        return State.INTERRUPTED
    return after


def promise(state: State, *, unsettled_side_effect: bool = False) -> str:
    """Say what the API promises: cancelled, completed, replayable or unknown."""
    if state in (State.CANCELLED, State.COMPLETED):
        return state.value
    if state is State.INTERRUPTED and unsettled_side_effect:
        return "unknown"
    return "replayable"
