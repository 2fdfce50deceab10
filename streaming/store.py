"""What driver, reaper and web ask of the database, in the core's words. chatapp implements it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from streaming.lifecycle import State
from streaming.log.ports import Ref
from streaming.snapshot import Snapshot
from streaming.upstream.ports import Message


@dataclass(frozen=True, slots=True)
class Job:
    """All that is needed to drive one generation."""

    ref: Ref
    state: State
    attempt: int  # the newest the database knows; 0 before the first
    pane: str
    model: str  # the catalogue's id
    params: Mapping[str, Any]
    messages: tuple[Message, ...]
    queued_at: int  # epoch ms
    owner: str = ""  # Whoever asked: those who wait for a model take turns by it.


@dataclass(frozen=True, slots=True)
class Live:
    """A generation that has not ended by the database, or only just: then its log may still miss the end."""

    ref: Ref
    state: State
    queued_at: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    A generation's end: its folded snapshot, terminal event included, and its events.

    `events` are the JSON forms of all events, in order, one a line; what the archive keeps.
    """

    snapshot: Snapshot
    events: str = field(repr=False)


class Store(Protocol):
    async def job(self, gen: str) -> Job | None:
        """Load a generation; None when there is none with this UUID."""
        ...

    async def begin(self, gen: str, attempt: int) -> bool:
        """
        Record that `attempt` drives now, state running. True once for each attempt.

        False when the database knows this one, a newer one or the end: where the log lost a generation that
        waited, two drivers may hold the same attempt, and only one of them may call the model.
        """
        ...

    async def finish(self, gen: str, attempt: int, outcome: Outcome) -> bool:
        """
        Commit the end and the archive in one transaction. False when a newer attempt or the end is known.

        Repeating it with the same attempt and the same terminal state gives True and changes nothing.
        """
        ...

    async def ended(self, gen: str) -> Outcome | None:
        """Give the committed end, or None while there is none. For repairing a log that misses it."""
        ...

    async def live(self, ended_within_ms: int) -> list[Live]:
        """
        List what needs a look: every generation without a committed end, and those that ended just now.

        A driver may die between the commit and the terminal event; the reaper then writes it to the log.
        """
        ...
