"""A generation as folded up to a seq, and the one reducer. static/js/snapshot.js is its twin.

tests/vectors/*.json hold both to the same meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never, cast

from streaming.errors import SequenceGap
from streaming.events import (
    BlockView,
    Body,
    Cancelled,
    CancelView,
    Done,
    Error,
    Event,
    Json,
    ReasoningDelta,
    Resumed,
    Start,
    Step,
    TextDelta,
    ToolComplete,
    ToolDelta,
    ToolResult,
    Usage,
    body_to_dict,
)
from streaming.lifecycle import TERMINAL, State, advance


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool call as far as it is known. `arguments` may be a piece until `complete`."""

    call: str
    name: str = ""
    arguments: str = ""
    complete: bool = False
    outcome: str | None = None
    result: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    html: str
    sealed: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """
    Everything a page shows of one generation.

    `shown` counts the code points of `text` that `blocks` show; the rest is the plain tail.
    `rendered_seq` is the `after_seq` of the newest view applied.
    """

    gen: str
    state: State = State.QUEUED
    attempt: int = 0
    seq: int = 0
    model: str = ""
    pane: str = ""
    params: Mapping[str, Json] = field(default_factory=dict)
    text: str = ""
    reasoning: str = ""
    tools: tuple[Tool, ...] = ()
    steps: tuple[str, ...] = ()
    usage: Mapping[str, Json] | None = None
    finish: str | None = None
    error: Mapping[str, Json] | None = None  # code, message, retryable, resumable; said, if anything was
    cancel: Mapping[str, Json] | None = None  # reason, upstream, latency_ms
    cancel_requested: Mapping[str, Json] | None = None  # at, by; None again once the terminal event has answered it
    resumed: int = 0  # how often the generation was resumed
    timings: Mapping[str, Json] = field(default_factory=dict)
    blocks: tuple[Block, ...] = ()
    shown: int = 0
    rendered_seq: int = 0


def fold(snapshot: Snapshot, event: Event) -> Snapshot:
    """
    Apply one event. Events at or below the snapshot's seq are duplicates and change nothing.

    Raises:
        SequenceGap: the event is beyond the next seq.
        IllegalTransition: the lifecycle does not allow it here.
    """
    if event.seq <= snapshot.seq:
        return snapshot
    if event.seq != snapshot.seq + 1:
        raise SequenceGap(snapshot.seq + 1, event.seq)
    changes = _changes(snapshot, event)
    state = advance(snapshot.state, event.body)
    if state in TERMINAL:
        changes["cancel_requested"] = None
    return replace(snapshot, **changes, state=state, seq=event.seq, attempt=event.attempt)


def fold_all(gen: str, events: Sequence[Event]) -> Snapshot:
    """Fold a generation's events, whole from the first on, in time linear in its length."""
    snapshot = Snapshot(gen)
    # Neighbouring deltas are joined first: folding one by one would copy the text again for each.
    for seq, body in enumerate(joined(event.body for event in events), start=1):
        snapshot = fold(snapshot, Event(gen, 0, seq, 0, body))
    return replace(snapshot, seq=len(events), attempt=events[-1].attempt) if events else snapshot


def joined(bodies: Iterable[Body]) -> Iterator[Body]:
    """Join neighbouring deltas of one kind, so that folding many of them stays linear."""
    pending: list[TextDelta | ReasoningDelta] = []
    for body in bodies:
        if pending and type(body) is not type(pending[0]):
            yield _join(pending)
            pending = []
        if isinstance(body, TextDelta | ReasoningDelta):
            pending.append(body)
        else:
            yield body
    if pending:
        yield _join(pending)


def _join(deltas: list[TextDelta | ReasoningDelta]) -> Body:
    return cast("Body", type(deltas[0])("".join(delta.text for delta in deltas)))


def fold_view(snapshot: Snapshot, view: BlockView | CancelView) -> Snapshot:
    """Apply a view. A block that is older than the newest applied, or a request after the end, changes nothing."""
    if isinstance(view, CancelView):
        return snapshot if snapshot.state in TERMINAL else requested(snapshot, view.at, view.by)
    if view.after_seq < snapshot.rendered_seq:
        return snapshot
    blocks = list(snapshot.blocks)
    blocks.extend(Block("", sealed=False) for _ in range(len(blocks), view.index + 1))
    blocks[view.index] = Block(view.html, view.sealed)
    return replace(snapshot, blocks=tuple(blocks), shown=view.length, rendered_seq=view.after_seq)


def requested(snapshot: Snapshot, at: int, by: str) -> Snapshot:
    """Note that a live generation was asked to stop."""
    return replace(snapshot, cancel_requested={"at": at, "by": by})


def snapshot_to_dict(snapshot: Snapshot) -> dict[str, Json]:
    """Give the JSON form that sync documents and snapshot frames carry."""
    return {
        "gen": snapshot.gen, "state": snapshot.state.value, "attempt": snapshot.attempt, "seq": snapshot.seq,
        "model": snapshot.model, "pane": snapshot.pane, "params": dict(snapshot.params),
        "text": snapshot.text, "reasoning": snapshot.reasoning,
        "tools": [
            {"call": t.call, "name": t.name, "arguments": t.arguments, "complete": t.complete,
             "outcome": t.outcome, "result": t.result}
            for t in snapshot.tools
        ],
        "steps": list(snapshot.steps), "usage": snapshot.usage, "finish": snapshot.finish,
        "error": snapshot.error, "cancel": snapshot.cancel, "cancel_requested": snapshot.cancel_requested,
        "resumed": snapshot.resumed,
        "timings": dict(snapshot.timings),
        "blocks": [{"html": b.html, "sealed": b.sealed} for b in snapshot.blocks],
        "shown": snapshot.shown, "rendered_seq": snapshot.rendered_seq,
    }  # fmt: skip


def _changes(snapshot: Snapshot, event: Event) -> dict[str, Json]:
    match event.body:
        case Start(model=model, pane=pane, params=params):
            return {"model": model, "pane": pane, "params": params}
        case TextDelta(text=text):
            return {"text": snapshot.text + text}
        case ReasoningDelta(text=text):
            return {"reasoning": snapshot.reasoning + text}
        case ToolDelta() | ToolComplete() | ToolResult():
            return {"tools": _tools(snapshot.tools, event.body)}
        case Step(label=label):
            return {"steps": (*snapshot.steps, label)}
        case Usage():
            return {"usage": body_to_dict(event.body)}
        case Resumed():
            return {"resumed": snapshot.resumed + 1}
        case Done(finish=finish, timings=timings):
            return {"finish": finish, "timings": timings}
        case Cancelled(reason=reason, upstream=upstream, latency_ms=latency_ms, timings=timings):
            cancel = {"reason": reason, "upstream": upstream, "latency_ms": latency_ms}
            return {"cancel": cancel, "timings": timings}
        case Error(timings=timings):
            told = body_to_dict(event.body)
            return {"error": {name: told[name] for name in _ERROR if name in told}, "timings": timings}
        case _ as never:
            assert_never(never)


_ERROR = ("code", "message", "retryable", "resumable", "said")


def _tools(tools: tuple[Tool, ...], body: ToolDelta | ToolComplete | ToolResult) -> tuple[Tool, ...]:
    known = {tool.call: tool for tool in tools}
    tool = known.get(body.call, Tool(body.call))
    match body:
        case ToolDelta(arguments=arguments, name=name):
            tool = replace(tool, name=tool.name or name or "", arguments=tool.arguments + arguments)
        case ToolComplete(name=name, arguments=arguments):
            tool = replace(tool, name=name, arguments=arguments, complete=True)
        case ToolResult(outcome=outcome, result=result):
            tool = replace(tool, outcome=outcome, result=result)
    known[body.call] = tool
    return tuple(known.values())
