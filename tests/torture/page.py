"""A browser's page without the browser: it folds frames, finds gaps, syncs and comes back, as the page does."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import httpx

from streaming.errors import IllegalTransition, SequenceGap
from streaming.events import VIEWS, BlockView, TurnView, event_from_dict, view_from_dict
from streaming.lifecycle import TERMINAL, State
from streaming.snapshot import Snapshot, fold, fold_view
from tests.torture.folded import snapshot_from_dict
from tests.torture.links import TRANSPORTS, Lost
from tests.torture.person import Person

_BACKOFF_FIRST_S, _BACKOFF_CAP_S = 0.3, 2.0


@dataclass(frozen=True, slots=True)
class Habit:
    """How somebody reads."""

    transport: str  # a key of TRANSPORTS
    pause_s: float = 0.0  # after each frame: a slow reader
    leaves_after_s: float | None = None  # and comes back at once: a reader that reconnects in a loop
    joins_after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What one page knows of one generation at the end, and what it has shown before."""

    page: str
    snapshot: Snapshot
    longest: str  # the longest text that was on the page
    first_end: State | None  # the first terminal state that it showed


class Page:
    """
    Follows one conversation until `run` is cancelled.

    `complaints` names what no page may ever be sent, whatever happens.
    """

    def __init__(self, person: Person, habit: Habit, name: str, rng: random.Random) -> None:
        self.name = name
        self.generations: dict[str, Snapshot] = {}
        self.complaints: list[str] = []
        self.syncs = self.connections = 0
        self.heard_at: dict[str, float] = {}  # by generation: monotonic time of the newest event
        self.longest_pause_s: dict[str, float] = {}
        self._person = person
        self._habit = habit
        self._rng = rng
        self._pause_s = habit.pause_s
        self._cursor = ""
        self._failures = 0
        self._needs_sync = True
        self._longest: dict[str, str] = {}
        self._first_end: dict[str, State] = {}
        self._changed = asyncio.Event()

    async def run(self) -> None:
        await asyncio.sleep(self._habit.joins_after_s)
        while True:
            try:
                if self._needs_sync:
                    await self._sync()
                await self._follow()
            except (Lost, httpx.HTTPError):
                self._failures += 1
                # After one failure the page goes on from its cursor; after more it asks what has become.
                self._needs_sync = self._needs_sync or self._failures > 2
                cap = min(_BACKOFF_CAP_S, _BACKOFF_FIRST_S * 2 ** min(self._failures, 10))
                await asyncio.sleep(self._rng.uniform(0, cap))

    async def until_ended(self, gens: Iterable[str]) -> None:
        """Wait until the page shows the end of every one of them."""
        while any(gen not in self.generations or self.generations[gen].state not in TERMINAL for gen in gens):
            self._changed.clear()
            await self._changed.wait()

    async def until(self, gen: str, length: int) -> None:
        """Wait until the page shows so many characters."""
        while gen not in self.generations or len(self.generations[gen].text) < length:
            self._changed.clear()
            await self._changed.wait()

    def seen(self, gen: str) -> Seen | None:
        snapshot = self.generations.get(gen)
        if snapshot is None:
            return None
        return Seen(self.name, snapshot, self._longest.get(gen, ""), self._first_end.get(gen))

    def forget_pauses(self) -> None:
        """Measure anew how long answers stand still."""
        self.heard_at.clear()
        self.longest_pause_s.clear()

    def hurry(self) -> None:
        """Read as fast as frames come from now on, so that a slow reader can be waited for."""
        self._pause_s = 0.0

    async def _sync(self) -> None:
        document = await self._person.sync()
        self.syncs += 1
        self._needs_sync = False
        self._cursor = document["cursor"]
        for turn in document["turns"]:
            for data in turn["generations"]:
                self._keep(snapshot_from_dict(data))

    async def _follow(self) -> None:
        self.connections += 1
        frames = TRANSPORTS[self._habit.transport](self._person, self._cursor)
        async with contextlib.aclosing(frames):
            try:
                async with asyncio.timeout(self._habit.leaves_after_s):
                    async for frame in frames:
                        if not self._apply(frame):
                            self._needs_sync = True
                            return
                        self._failures = 0
                        await asyncio.sleep(self._pause_s)
            except TimeoutError:
                return

    def _apply(self, frame: dict[str, Any]) -> bool:
        """Apply a frame. False: something is missing, and the cursor has not moved."""
        match frame["type"]:
            case "ping":
                return True
            case "resync":
                return False
            case "snapshot":
                fits = all(data["gen"] in self.generations for data in frame["generations"])
                for data in frame["generations"]:
                    self._keep(snapshot_from_dict(data))
            case _:
                fits = all(self._apply_entry(entry) for entry in frame["events"])
        if fits:
            self._cursor = frame["cursor"]
        return fits

    def _apply_entry(self, entry: dict[str, Any]) -> bool:
        if entry["type"] == "turn":
            for data in entry["turn"]["generations"]:
                if data["gen"] not in self.generations:
                    self._keep(snapshot_from_dict(data))
            return True
        before = self.generations.get(entry["gen"])
        if before is None:
            return False
        if entry["type"] in VIEWS:
            return self._apply_view(before, entry)
        event = event_from_dict(entry)
        if event.attempt < before.attempt:
            return True
        if event.attempt > before.attempt and event.seq <= before.seq and before.state not in TERMINAL:
            return False
        try:
            after = fold(before, event)
        except (SequenceGap, IllegalTransition):
            return False
        if after is not before:
            self._measure(event.gen)
            self._keep(after)
        return True

    def _apply_view(self, before: Snapshot, entry: dict[str, Any]) -> bool:
        view = view_from_dict(entry)
        if isinstance(view, TurnView) or (isinstance(view, BlockView) and view.after_seq > before.seq):
            return False
        self._keep(fold_view(before, view))
        return True

    def _keep(self, snapshot: Snapshot) -> None:
        gen = snapshot.gen
        self.generations[gen] = snapshot
        if len(snapshot.text) > len(self._longest.get(gen, "")):
            self._longest[gen] = snapshot.text
        if snapshot.state in TERMINAL:
            self._first_end.setdefault(gen, snapshot.state)
        if snapshot.shown > len(snapshot.text):
            self.complaints.append(f"{self.name}: {gen} shows {snapshot.shown} of {len(snapshot.text)} characters")
        self._changed.set()

    def _measure(self, gen: str) -> None:
        now = time.monotonic()
        if gen in self.heard_at:
            pause = now - self.heard_at[gen]
            self.longest_pause_s[gen] = max(self.longest_pause_s.get(gen, 0.0), pause)
        self.heard_at[gen] = now
