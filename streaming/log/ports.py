"""What driver and follower ask of a log. `memory.py` is the readable specification of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from streaming.errors import LogError
from streaming.lifecycle import State
from streaming.snapshot import Snapshot

# A driver that is silent for this long has lost its generation.
LEASE_MS = 10_000
# Above every attempt: the mark of a generation that was removed, so that no driver writes it again.
BEYOND = 2**31 - 1
# A log stays this long after its last activity, for late readers.
RETENTION_MS = 15 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Ref:
    """Names a generation: its UUID, and its dense number in its conversation."""

    conversation: str
    number: int
    gen: str


class Kind(StrEnum):
    TEXT = "t"
    REASONING = "r"
    START = "s"  # a fact whose payload names the generation
    FACT = "e"  # any other event, terminal ones included
    BLOCK = "b"  # a block view
    NOTICE = "n"  # a view that belongs to the conversation
    UNKNOWN = "?"  # of a newer version than this one; readers skip it


# What is made for each token is not frozen: freezing costs a call for each field. Nobody changes it.
@dataclass(slots=True)
class Entry:
    """
    One entry of a log, without its id.

    `payload` is raw text for deltas, otherwise JSON. `seq` of a view is the seq it comes after.
    `index` is the block's index for block views.
    """

    number: int
    attempt: int
    seq: int
    kind: Kind
    payload: str
    index: int = 0


@dataclass(slots=True)
class Logged:
    cursor: str
    entry: Entry


@dataclass(slots=True)
class Batch:
    """
    What one driver appends at once, in order. No entries: only the lease is renewed.

    `last_seq` is the seq the log must hold before: the write is refused beyond it. `restore`
    allows a generation whose log vanished to be written again from seq 1.
    """

    ref: Ref
    attempt: int
    last_seq: int
    state: State  # after the batch
    entries: tuple[Entry, ...] = ()
    restore: bool = False


@dataclass(frozen=True, slots=True)
class CancelRequest:
    at: int  # epoch ms, by the log's clock
    by: str


@dataclass(slots=True)
class Appended:
    cursor: str  # of the last entry written; its millisecond part is the batch's time
    cancel: CancelRequest | None


@dataclass(frozen=True, slots=True)
class Claim:
    """Answer to a claim. `granted` is False while another driver's lease runs or after the end."""

    granted: bool
    attempt: int
    seq: int
    state: State
    cancel: CancelRequest | None
    was_known: bool  # The log knew an earlier attempt; of one that it did not know it may have lost anything.


@dataclass(frozen=True, slots=True)
class Lease:
    """
    What the log knows of who drives. `expires_at` is 0 when nobody ever did.

    Claim and append renew it, and tell the driver of a cancel request in the same step.
    """

    state: State
    attempt: int
    expires_at: int  # epoch ms, by the log's clock
    now: int  # the log's clock

    @property
    def runs(self) -> bool:
        """
        Does somebody drive?

        A lease that runs for far longer than leases do was given before the clock stepped back, and means nothing.
        """
        return 0 < self.expires_at - self.now <= 2 * LEASE_MS

    def knows_of(self, request: CancelRequest) -> bool:
        """Say whether the driver was told of a request: it renewed its lease after it."""
        return self.expires_at - LEASE_MS > request.at


@dataclass(frozen=True, slots=True)
class LogSnapshot:
    """
    State and cursor (as `position` gives it) of one moment.

    Absent are generations that the log does not know, that have ended, or of which a part was lost that
    their driver has not written again yet.
    """

    cursor: str
    generations: Mapping[int, Snapshot]  # by number


class Log(Protocol):
    async def claim(self, ref: Ref, known_attempt: int) -> Claim:
        """
        Take a free or expired generation and raise its attempt above `known_attempt` (the database's).

        Raises:
            LogUnavailable
        """
        ...

    async def append(self, batches: Sequence[Batch]) -> list[Appended | LogError]:
        """
        Append each batch atomically, all in one round trip; answers stand in the batches' order.

        An answer is Fenced, LogLost or LogUnavailable where that batch was refused; nothing of a
        refused batch was written. Entries the log already holds are skipped. With the terminal event the
        generation's snapshot goes: by then the database has the answer.

        Raises:
            LogUnavailable: the round trip failed; each batch may or may not have been written.
        """
        ...

    async def cancel(self, ref: Ref, by: str) -> Claim:
        """Record a cancel request, once, and tell drivers and readers. `granted` is False after the end."""
        ...

    async def remove(self, conversation: str, refs: Sequence[Ref]) -> None:
        """
        Remove a deleted conversation's log and these generations. Their drivers are fenced, and told; notices that
        are under way are not written any more.

        Raises:
            LogUnavailable
        """
        ...

    async def announce(self, conversation: str, view_json: str) -> str:
        """Append a notice of the conversation; gives its cursor, or "" when it was deleted meanwhile."""
        ...

    async def snapshot(self, conversation: str, refs: Sequence[Ref]) -> LogSnapshot: ...

    async def leases(self, refs: Sequence[Ref]) -> list[Lease | None]:
        """Look at who drives; None where the log knows nothing of the generation."""
        ...

    async def range(self, conversation: str, after: str, until: str, limit: int) -> list[Logged]:
        """Read entries with after < cursor <= until, at most `limit`."""
        ...

    async def position(self, conversation: str) -> tuple[str, int]:
        """Give the cursor after which whatever is written from now on comes, and the log's clock in epoch ms."""
        ...

    def tail(self) -> Tail: ...

    def cancellations(self) -> AsyncIterator[str]:
        """Yield UUIDs of generations whose cancel was asked for, as a hint: some may be missing."""
        ...

    async def close(self) -> None: ...


class Tail(Protocol):
    """One blocking reader over many logs: wait, then read, over and over."""

    async def wait(self, at_most_ms: int) -> None:
        """
        Wait until something was written to any log since the last wait, or `interrupt` was called.

        May return without either.
        """
        ...

    async def read(self, cursors: Mapping[str, str]) -> dict[str, list[Logged]]:
        """Give what these logs have after their cursors; a log that has nothing is absent."""
        ...

    async def interrupt(self) -> None:
        """End the `wait` under way, or the next one: the set of logs changed."""
        ...

    async def close(self) -> None: ...
