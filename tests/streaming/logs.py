"""Builders of batches for tests of the log."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from uuid import uuid4

from streaming.events import BlockView, Body, Done, Start, TextDelta, view_from_dict
from streaming.lifecycle import State, advance
from streaming.log.codec import entry_of, entry_of_view, event_of
from streaming.log.ports import Appended, Batch, Entry, Kind, Log, Ref
from streaming.snapshot import Snapshot, fold, fold_view


def new_ref(number: int = 1, conversation: str | None = None) -> Ref:
    return Ref(conversation or str(uuid4()), number, str(uuid4()))


START = Start("smol", "pane-1", {"temperature": 0})
DONE = Done("stop", "0" * 64, 0)


@dataclass
class Writer:
    """Builds the batches of one attempt, one after the other."""

    ref: Ref
    attempt: int
    seq: int = 0
    state: State = State.QUEUED
    entries: list[Entry] = field(default_factory=list)

    def batch(self, *bodies: Body | BlockView) -> Batch:
        last_seq, entries = self.seq, []
        for body in bodies:
            if isinstance(body, BlockView):
                entries.append(entry_of_view(self.ref, self.attempt, replace(body, gen=self.ref.gen)))
                continue
            self.seq += 1
            self.state = advance(self.state, body)
            entries.append(entry_of(self.ref, self.attempt, self.seq, body))
        self.entries += entries
        return Batch(self.ref, self.attempt, last_seq, self.state, tuple(entries))

    def everything(self) -> Batch:
        return Batch(self.ref, self.attempt, 0, self.state, tuple(self.entries), restore=True)


async def claimed(log: Log, ref: Ref) -> Writer:
    return Writer(ref, (await log.claim(ref, 0)).attempt)


async def write(log: Log, batch: Batch) -> Appended:
    (answer,) = await log.append([batch])
    assert isinstance(answer, Appended), answer
    return answer


def texts(*parts: str) -> list[Body]:
    return [TextDelta(part) for part in parts]


async def folded(log: Log, ref: Ref) -> Snapshot:
    """Fold the whole log from its first entry, as a reader would."""
    snapshot = Snapshot(ref.gen)
    for logged in await log.range(ref.conversation, "0-0", "99999999999999-0", 10_000):
        if logged.entry.number != ref.number:
            continue
        if logged.entry.kind is Kind.BLOCK:
            view = view_from_dict(json.loads(logged.entry.payload))
            assert isinstance(view, BlockView)
            snapshot = fold_view(snapshot, view)
        else:
            snapshot = fold(snapshot, event_of(ref.gen, logged))
    return snapshot


async def stored(log: Log, ref: Ref) -> Snapshot:
    return (await log.snapshot(ref.conversation, [ref])).generations[ref.number]


async def absent(log: Log, ref: Ref) -> bool:
    return (await log.snapshot(ref.conversation, [ref])).generations == {}
