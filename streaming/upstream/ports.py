"""What the driver asks of a model service, and what it is given back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class Image:
    media_type: str  # One of streaming.upstream.request.IMAGE_TYPES.
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str
    images: tuple[Image, ...] = ()  # Of a user only; they come before the text.


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may ask for."""

    name: str
    description: str
    parameters: Mapping[str, Any]  # The JSON schema of an object.


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """What the answer's text has to be: JSON of this schema."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """
    One call. `model` is the upstream's own name; `params` are in our words (see README).

    What an upstream cannot express of it is refused before anything is sent.
    """

    model: str
    messages: tuple[Message, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    tools: tuple[Tool, ...] = ()
    answer_schema: AnswerSchema | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """The upstream accepted the call: its response head has arrived."""


@dataclass(slots=True)
class TextChunk:
    """Not frozen: making one costs a third so, and one is made for each token."""

    text: str  # Never empty.
    tokens: tuple[int, ...] = ()  # The ids behind it, where the upstream gives them.


@dataclass(slots=True)
class ReasoningChunk:
    """Not frozen, as a TextChunk."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolChunk:
    """A piece of a tool call; `name` with the first piece only."""

    call: str
    arguments: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCompleteChunk:
    call: str
    name: str
    arguments: str  # A whole JSON object, as text.


@dataclass(frozen=True, slots=True)
class UsageChunk:
    """A running total; None where the upstream did not say."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None


@dataclass(frozen=True, slots=True)
class FinishChunk:
    """Last chunk of a call that ended by the dialect's own sign. `raw` is the upstream's word."""

    finish: str  # one of streaming.events.FINISHES
    raw: str | None = None


# Every text in them is valid Unicode without NUL.
Chunk: TypeAlias = Opened | TextChunk | ReasoningChunk | ToolChunk | ToolCompleteChunk | UsageChunk | FinishChunk


class UpstreamCall(Protocol):
    """One call under way. Iterate it once; always close it."""

    def __aiter__(self) -> AsyncIterator[Chunk]:
        """
        Yield Opened, then content, then exactly one FinishChunk as the last.

        Raises:
            UpstreamError: everything else that can happen, deadlines included.
        """
        ...

    async def close(self) -> bool:
        """Close the connection, also while another task iterates. True once it is known closed. Idempotent."""
        ...


class Upstream(Protocol):
    """A configured model service."""

    def call(self, request: ChatRequest) -> UpstreamCall:
        """
        Prepare a call; nothing is sent before iteration starts.

        Raises:
            UpstreamError: the call cannot be made as it is asked for, or not now.
        """
        ...
