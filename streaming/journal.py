"""What one driver has to say, what it said, and what the log is known to hold of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from streaming.errors import Fenced, LogError, LogLost
from streaming.events import BlockView, Body, ReasoningDelta, TextDelta
from streaming.lifecycle import State, advance
from streaming.log.codec import Stored, at_of, entry_of, entry_of_view, json_of, snapshot_of
from streaming.log.ports import Appended, Batch, CancelRequest, Entry, Kind, Ref
from streaming.snapshot import Snapshot


class Journal:
    """
    One attempt's entries, in order.

    Deltas that follow each other are joined until they are taken. Whatever was taken stays, so that
    a log that lost it can be given it again. `take` gives all that the log is not known to hold;
    `settle` must follow with the log's answer.
    """

    def __init__(self, ref: Ref, attempt: int, seq: int = 0, state: State = State.QUEUED) -> None:
        self.ref = ref
        self.attempt = attempt
        self.seq = seq
        self.state = state
        self.cancel: CancelRequest | None = None
        self.fenced = False
        self._first_seq = seq  # what the log held before this attempt
        self._entries: list[Entry] = []
        self._open: TextDelta | ReasoningDelta | None = None
        self._pieces: list[str] = []
        self._confirmed = 0  # so many entries are known to be in the log
        self._taken = 0
        self._restore = False
        self._times: list[tuple[int, int]] = []  # (entries confirmed, epoch ms)

    @property
    def settled(self) -> bool:
        return self._open is None and self._confirmed == len(self._entries)

    def record(self, body: Body) -> None:
        """
        Add an event.

        Raises:
            IllegalTransition: the lifecycle does not allow it here.
        """
        if self._open is not None and isinstance(body, TextDelta | ReasoningDelta) and type(body) is type(self._open):
            self._pieces.append(body.text)
            return
        self._close_delta()
        self.state = advance(self.state, body)
        self.seq += 1
        if isinstance(body, TextDelta | ReasoningDelta):
            self._open, self._pieces = body, [body.text]
        else:
            self._entries.append(entry_of(self.ref, self.attempt, self.seq, body))

    def show(self, index: int, html: str, *, sealed: bool, length: int) -> None:
        """Add a block view that comes after what was recorded so far."""
        self._close_delta()
        view = BlockView(self.ref.gen, self.seq, index, html, sealed, length)
        self._entries.append(entry_of_view(self.ref, self.attempt, view))

    def take(self) -> Batch:
        self._close_delta()
        entries = tuple(self._entries[self._confirmed :])
        self._taken = len(self._entries)
        return Batch(self.ref, self.attempt, self._seq_at(self._confirmed), self.state, entries, self._restore)

    def settle(self, answer: Appended | LogError) -> None:
        match answer:
            case Appended():
                self._restore = False
                if self._taken > self._confirmed and answer.cursor:
                    self._times.append((self._taken, at_of(answer.cursor)))
                self._confirmed = self._taken
                self.cancel = self.cancel or answer.cancel
            case Fenced():
                self.fenced = True
            case LogLost():
                self._lose(answer.stored_seq)
            case _:
                pass  # Unavailable: it may be there or not; the same is taken again, and skipped if it is.

    def lines(self) -> Iterator[str]:
        """Give the JSON of every event of this attempt; those not confirmed yet carry the newest known time."""
        times = iter([*self._times, (len(self._entries) + 1, self._times[-1][1] if self._times else 0)])
        until, at = next(times)
        for place, entry in enumerate(self._entries):
            while place >= until:
                until, at = next(times)
            if entry.kind is not Kind.BLOCK:
                yield json_of(self.ref.gen, entry, at)

    def snapshot(self) -> Snapshot:
        """Give what this attempt's events say, without blocks: as the log would, in time linear in the text."""
        said = Stored(
            self.attempt,
            self.seq,
            "".join(entry.payload for entry in self._entries if entry.kind is Kind.TEXT),
            "".join(entry.payload for entry in self._entries if entry.kind is Kind.REASONING),
            tuple(entry.payload for entry in self._entries if entry.kind in (Kind.START, Kind.FACT)),
            {},
            None,
        )
        return snapshot_of(self.ref, said)

    def _close_delta(self) -> None:
        if self._open is not None:
            body = type(self._open)("".join(self._pieces))
            self._open = None
            self._entries.append(entry_of(self.ref, self.attempt, self.seq, body))

    def _seq_at(self, place: int) -> int:
        return self._entries[place - 1].seq if place else self._first_seq

    def _lose(self, stored_seq: int) -> None:
        if stored_seq < self._first_seq:
            # What an earlier attempt wrote is gone too, and cannot be given back.
            if self._first_seq:
                self.fenced = True
                return
            self._restore = True
        # Views have the seq of the event before them: that the event is there says nothing of them.
        self._confirmed = next(
            (place for place, entry in enumerate(self._entries) if _is_beyond(entry, stored_seq)), len(self._entries)
        )


def _is_beyond(entry: Entry, seq: int) -> bool:
    return entry.seq > seq or (entry.seq == seq and entry.kind is Kind.BLOCK)
