"""What is known of one generation after the faults have stopped, by witnesses who did not talk to each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from streaming.events import Event, Start
from streaming.lifecycle import State
from streaming.log.ports import Lease, Logged, LogSnapshot
from tests.torture.account import Call
from tests.torture.hurts import RECOVERY_MS, Hurt, Hurts, Place, to_monotonic
from tests.torture.page import Seen
from tests.torture.person import Asked, Stop
from tests.torture.scripts import ALL, Script


@dataclass(frozen=True, slots=True)
class Row:
    """The generation in the database."""

    state: State
    attempt: int
    seq: int
    text: str
    text_length: int
    text_sha256: str
    reasoning: str
    error: Mapping[str, Any] | None
    blocks: tuple[str, ...]  # their HTML
    is_rendered: bool


@dataclass(frozen=True, slots=True)
class Archive:
    """Its events in the database; `lines` is what the digest is of."""

    events: tuple[Event, ...]
    lines: str
    count: int
    sha256: str


class Lost(StrEnum):
    """What the suite itself destroyed in Redis."""

    STATE = "its keys, one or all"
    LOG = "its conversation's log"
    TAIL = "what was written last"


@dataclass(frozen=True, slots=True)
class Loss:
    """Something of a generation was destroyed, and it is certain that it was there before."""

    what: Lost
    at_mono: float
    at: float  # epoch ms, by the machine's clock as Redis uses it


@dataclass(frozen=True, slots=True)
class Evidence:
    asked: Asked
    row: Row
    archive: Archive | None
    entries: tuple[Logged, ...]  # the log's, in its order, views included
    lease: Lease | None  # what the log knows of who drives, and of the end
    samples: tuple[LogSnapshot, ...] = ()  # what the log's snapshot script gave while it ran
    calls: tuple[Call, ...] = ()  # by the upstream's own account, oldest first
    seen: tuple[Seen, ...] = ()
    stops: tuple[Stop, ...] = ()
    losses: tuple[Loss, ...] = ()
    hurts: Hurts = field(default_factory=Hurts)

    @property
    def script(self) -> Script:
        return ALL[self.asked.model]

    @property
    def archived(self) -> tuple[Event, ...]:
        return self.archive.events if self.archive else ()

    @property
    def is_taken_over(self) -> bool:
        """Was it ended by somebody else than the driver that began it? Then nobody could write again what was lost."""
        if not self.archived:
            return True
        start, timings = self.archived[0], getattr(self.archived[-1].body, "timings", {})
        # Whoever has only a snapshot left tells it as of the moment when the answer was queued, in its own name.
        is_told_again = start.at == timings.get("queued_at")
        return is_told_again or start.attempt != self.row.attempt or not isinstance(start.body, Start)

    @property
    def ended_at(self) -> float:
        """Give when its end was decided, in epoch ms: before the database committed it."""
        return float(getattr(self.archived[-1].body, "timings", {}).get("ended_at", 0)) if self.archived else 0.0

    def lost(self, *what: Lost) -> bool:
        return any(loss.what in what for loss in self.losses)

    @property
    def life(self) -> tuple[float, float]:
        """Give when it was asked for, and when its end was decided, by the monotonic clock."""
        return self.asked.at_mono, to_monotonic(self.ended_at)

    @property
    def worker(self) -> int | None:
        """Name the worker that drove it, as far as the upstream knows."""
        return self.calls[-1].way.worker if self.calls else None

    def felt(self, places: Iterable[Place], call: Call, recovery: float = RECOVERY_MS) -> list[Hurt]:
        """Give what a call, or the driver that made it, could feel of the faults."""
        closed = call.closed_mono if call.closed_mono is not None else float("inf")
        found = self.hurts.felt(places, call.opened_mono, closed, call.way.worker, recovery)
        return [hurt for hurt in found if hurt.place is not Place.WORKER_TO_UPSTREAM or not call.way.is_safe]
