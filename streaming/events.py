"""The facts a log may hold: protocol version 1 as types, and their JSON form.

A body says what happened. An Event adds where it stands: generation, attempt, seq, time.
Views are no facts: they have no seq, and the archive drops them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeAlias, TypeVar

from streaming.errors import ProtocolError

VERSION = 1

Json: TypeAlias = Any
FINISHES = ("stop", "length", "tool_calls", "content_filter", "refusal", "pause", "unknown")


@dataclass(frozen=True, slots=True)
class Start:
    """First event of a generation."""

    type: ClassVar[str] = "start"
    model: str  # The catalogue's id, not the upstream's name.
    pane: str
    params: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TextDelta:
    type: ClassVar[str] = "text_delta"
    text: str  # Never empty. Whole code points; may split a grapheme.


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    type: ClassVar[str] = "reasoning_delta"
    text: str


@dataclass(frozen=True, slots=True)
class ToolDelta:
    """A piece of a tool call, for preview only. Nothing may act on it."""

    type: ClassVar[str] = "tool_delta"
    call: str
    arguments: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ToolComplete:
    """A tool call that the upstream closed. `arguments` is a whole JSON object, as text."""

    type: ClassVar[str] = "tool_complete"
    call: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    type: ClassVar[str] = "tool_result"
    call: str
    outcome: str  # succeeded, failed, rejected or unknown
    result: str


@dataclass(frozen=True, slots=True)
class Step:
    """A further upstream call inside the same generation."""

    type: ClassVar[str] = "step"
    n: int
    label: str


@dataclass(frozen=True, slots=True)
class Usage:
    """A running total: the last one wins. None means the upstream did not say."""

    type: ClassVar[str] = "usage"
    source: str  # upstream or estimated
    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None


@dataclass(frozen=True, slots=True)
class Resumed:
    type: ClassVar[str] = "resumed"
    kind: str  # token_prefix
    prefix_tokens: int
    prefilled_tokens: int


@dataclass(frozen=True, slots=True)
class Done:
    """Terminal. Written only after the database has committed the answer."""

    type: ClassVar[str] = "done"
    finish: str
    text_sha256: str  # of the UTF-8 bytes, lower-case hex
    text_length: int  # in code points
    timings: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Terminal. `upstream` says whether the connection is known to be closed."""

    type: ClassVar[str] = "cancelled"
    reason: str
    upstream: str  # closed or unproven
    latency_ms: int  # from the recorded request to this event
    text_length: int
    timings: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Error:
    """Terminal. Code driver_lost means interrupted; every other code means failed."""

    type: ClassVar[str] = "error"
    code: str
    message: str
    retryable: bool
    resumable: bool
    text_length: int
    timings: Mapping[str, Json] = field(default_factory=dict)
    said: str | None = None  # The upstream's own words, cleaned and without secrets; at most 2,000 code points.


Terminal: TypeAlias = Done | Cancelled | Error
Body: TypeAlias = (
    Start | TextDelta | ReasoningDelta | ToolDelta | ToolComplete | ToolResult | Step | Usage | Resumed | Terminal
)

BODIES: dict[str, type[Body]] = {
    cls.type: cls
    for cls in (
        Start, TextDelta, ReasoningDelta, ToolDelta, ToolComplete, ToolResult,
        Step, Usage, Resumed, Done, Cancelled, Error,
    )
}  # fmt: skip
TERMINAL_TYPES = frozenset({Done.type, Cancelled.type, Error.type})


@dataclass(frozen=True, slots=True)
class Event:
    gen: str  # the generation's UUID
    attempt: int
    seq: int  # dense from 1
    at: int  # epoch milliseconds, by the log's clock
    body: Body


@dataclass(frozen=True, slots=True)
class BlockView:
    """
    Blocks 0…index now show the first `length` code points of the text; the rest is the plain tail.

    A sealed block never changes, except by the whole-document pass at the end. Empty HTML removes
    the block from sight.
    """

    type: ClassVar[str] = "block"
    gen: str
    after_seq: int
    index: int
    html: str
    sealed: bool
    length: int


@dataclass(frozen=True, slots=True)
class TurnView:
    """A turn was added, or has one more generation; `turn` is its part of the sync document, with what is new."""

    type: ClassVar[str] = "turn"
    turn: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class CancelView:
    """Somebody asked a generation to stop. The driver answers with the terminal event."""

    type: ClassVar[str] = "cancel"
    gen: str
    at: int  # epoch milliseconds, by the log's clock
    by: str  # user, guest or operator


View: TypeAlias = BlockView | TurnView | CancelView
VIEWS: dict[str, type[View]] = {cls.type: cls for cls in (BlockView, TurnView, CancelView)}

_T = TypeVar("_T", bound=Body | View)


def body_to_dict(body: Body | View) -> dict[str, Json]:
    """Give the fields of a body without its type; fields that are None are left out."""
    values = ((f.name, getattr(body, f.name)) for f in fields(body))
    return {name: value for name, value in values if value is not None}


def body_from_dict(kind: str, data: Mapping[str, Json]) -> Body:
    """
    Build a body and check its fields.

    Raises:
        ProtocolError: an unknown type, a missing or undeclared field, or an empty delta.
    """
    cls = BODIES.get(kind)
    if cls is None:
        raise ProtocolError(f"unknown event type {kind!r}")
    body = _build(cls, data)
    if isinstance(body, TextDelta | ReasoningDelta) and not body.text:
        raise ProtocolError(f"{kind} carries no text")
    return body


def event_to_dict(event: Event) -> dict[str, Json]:
    return {
        "v": VERSION, "gen": event.gen, "attempt": event.attempt, "seq": event.seq,
        "type": event.body.type, "at": event.at, **body_to_dict(event.body),
    }  # fmt: skip


def event_from_dict(data: Mapping[str, Json]) -> Event:
    """
    Read an event from its JSON form.

    Raises:
        ProtocolError: it is not a version 1 event.
    """
    rest = dict(data)
    try:
        version, kind = rest.pop("v"), rest.pop("type")
        envelope = {name: rest.pop(name) for name in ("gen", "attempt", "seq", "at")}
    except KeyError as exc:
        raise ProtocolError(f"an event needs the field {exc}") from exc
    if version != VERSION:
        raise ProtocolError(f"expected protocol version {VERSION}, got {version!r}")
    return Event(**envelope, body=body_from_dict(kind, rest))


def lines_of(events: Iterable[Event]) -> str:
    """Write events as the archive keeps them, one a line."""
    return "\n".join(dumps(event_to_dict(event)) for event in events)


def events_of(lines: str) -> list[Event]:
    """
    Read what `lines_of` wrote.

    Raises:
        ProtocolError: a line is not a version 1 event.
    """
    # splitlines() would also split inside a text that holds U+2028.
    return [event_from_dict(json.loads(line)) for line in lines.split("\n")]


def view_to_dict(view: View) -> dict[str, Json]:
    return {"v": VERSION, "type": view.type, **body_to_dict(view)}


def view_from_dict(data: Mapping[str, Json]) -> View:
    """
    Read a view from its JSON form.

    Raises:
        ProtocolError: it is not a version 1 view.
    """
    rest = {name: value for name, value in data.items() if name not in ("v", "type")}
    cls = VIEWS.get(data.get("type", ""))
    if cls is None:
        raise ProtocolError(f"unknown view type {data.get('type')!r}")
    return _build(cls, rest)


def dumps(value: Json) -> str:
    """Encode compactly, and as text: a lone surrogate is an error here, not in a browser."""
    return _ENCODER.encode(value)


# json.dumps would build an encoder for each call, which costs more than most of what is encoded.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def _build(cls: type[_T], data: Mapping[str, Json]) -> _T:
    undeclared = data.keys() - {f.name for f in fields(cls)}
    if undeclared:
        raise ProtocolError(f"{cls.__name__} does not declare {sorted(undeclared)}")
    try:
        return cls(**data)
    except TypeError as exc:
        raise ProtocolError(f"{cls.__name__}: {exc}") from exc
