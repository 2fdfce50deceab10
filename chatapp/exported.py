"""What an export is made of: turns with their ended answers, each checked against its archived events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from chatapp.integrity import faults_of
from chatapp.models import Conversation, Generation, Turn
from streaming.lifecycle import State

LabelOf: TypeAlias = Callable[[str], str]

_WHY_PARTIAL = {
    State.CANCELLED: "stopped before its end",
    State.FAILED: "failed before its end",
    State.INTERRUPTED: "interrupted before its end",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """
    One generation. It is whole if nothing speaks against it: `faults` is what does.

    `label` is what people call its model, `pane` its pane's number in the turn, from 1.
    """

    row: Generation
    label: str
    pane: int
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Exported:
    """A conversation's turns, and whether answers that are not whole are wanted, too."""

    conversation: Conversation
    turns: Sequence[tuple[Turn, Sequence[Answer]]]
    partial: bool

    def wants(self, answer: Answer) -> bool:
        return not answer.row.is_live and (self.partial or not answer.faults)


def answers_of(rows: Iterable[Generation], label_of: LabelOf) -> list[Answer]:
    """Give a turn's answers, in order."""
    panes: dict[int, int] = {}
    return [
        Answer(row, label_of(row.model), panes.setdefault(row.pane_id, len(panes) + 1), _faults(row)) for row in rows
    ]


def tokens_of(row: Generation) -> dict[str, int]:
    return {name: tokens for name, tokens in (row.usage or {}).items() if isinstance(tokens, int)}


def _faults(row: Generation) -> tuple[str, ...]:
    if row.is_live:
        return ("still being written",)
    faults = faults_of(row, getattr(row, "archive", None))
    if row.state in _WHY_PARTIAL:
        faults.insert(0, _WHY_PARTIAL[State(row.state)])
    if row.continues_id is not None:
        faults.append("continues another answer, and is not whole without it")
    return tuple(faults)
