"""Scripts for the scripted upstream: what they hold, and how they play without a clock."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from streaming.upstream.ports import (
    Chunk,
    FinishChunk,
    ReasoningChunk,
    TextChunk,
    ToolChunk,
    ToolCompleteChunk,
    UsageChunk,
)  # fmt: skip

RATE = 30.0
# Like a byte-pair tokenizer on prose: a short word with its leading space, a run of digits, a sign.
_PIECE = re.compile(r" ?[^\W\d_]{1,7}|\d{1,3}|\n+| +|.", re.DOTALL)
# Arguments come in pieces of this many characters, as several services cut them.
_ARGUMENT_PIECE = 8

CutKind: TypeAlias = Literal["end", "reset"]


@dataclass(frozen=True, slots=True)
class Say:
    text: str
    reasoning: bool = False
    times: int = 1
    echo: bool = False


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float  # math.inf is silence for ever.


@dataclass(frozen=True, slots=True)
class Rate:
    per_second: float


@dataclass(frozen=True, slots=True)
class Report:
    """An error object inside the stream."""

    message: str
    code: str = "upstream_reported"


@dataclass(frozen=True, slots=True)
class Cut:
    kind: CutKind


Step: TypeAlias = Say | Pause | Rate | ToolCompleteChunk | UsageChunk | FinishChunk | Report | Cut
Beat: TypeAlias = Chunk | Pause | Rate | Report | Cut


@dataclass(frozen=True, slots=True)
class Refusal:
    """The upstream answers the call with this status and no stream."""

    status: int
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Script:
    name: str
    title: str
    steps: tuple[Step, ...]
    rate: float = RATE
    open_after_s: float = 0.0
    refusal: Refusal | None = None

    def beats(self, prompt: str, max_pieces: int | None = None, *, call: int = 1) -> Iterator[Beat]:
        """
        Play without a clock: one chunk at a time, and what happens between chunks.

        The last beat is a finish, a report, a cut or silence for ever. `max_pieces` ends the answer with
        the finish `length` after so many pieces of text. `call` is the number of this play, for a script
        that tells it.
        """
        left = math.inf if max_pieces is None else max_pieces
        for step in self.steps:
            for beat in _play(step, prompt, call):
                if isinstance(beat, TextChunk):
                    if left <= 0:
                        yield FinishChunk("length", "length")
                        return
                    left -= 1
                yield beat
        if not self.steps or not ends(self.steps[-1]):
            yield FinishChunk("stop", "stop")


def ends(step: Step) -> bool:
    """Say whether nothing can follow this step."""
    return isinstance(step, FinishChunk | Report | Cut) or step == Pause(math.inf)


def split_model(model: str) -> tuple[str, float | None]:
    """Read `name` or `name@rate`; a rate that is no number above 0 leaves the whole as the name."""
    name, at, rate = model.rpartition("@")
    try:
        per_second = float(rate)
    except ValueError:
        per_second = 0.0
    return (name, per_second) if at and per_second > 0 else (model, None)


def pieces(text: str) -> list[str]:
    """Cut text into pieces of about a token; joined they are the text."""
    return _PIECE.findall(text)


def echoed(text: str, prompt: str, call: int) -> str:
    """Put the prompt and the call's number in their places."""
    return text.replace("{call}", str(call)).replace("{prompt}", prompt)


def _play(step: Step, prompt: str, call: int) -> Iterator[Beat]:
    match step:
        case Say(text=text, reasoning=reasoning, times=times, echo=echo):
            chunk = ReasoningChunk if reasoning else TextChunk
            said = pieces(echoed(text, prompt, call) if echo else text)
            for _ in range(times):
                yield from map(chunk, said)
        case ToolCompleteChunk(call=tool, name=name, arguments=arguments):
            for at in range(0, len(arguments), _ARGUMENT_PIECE):
                yield ToolChunk(tool, arguments[at : at + _ARGUMENT_PIECE], None if at else name)
            yield step
        case _:
            yield step
