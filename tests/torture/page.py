"""
A browser's page without the browser: it folds frames, finds gaps, syncs and comes back, as the page does.

Its twins are static/js/conversation.js, for what is known, and static/js/connection.js, for when it asks.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import httpx

from streaming.errors import IllegalTransition, SequenceGap
from streaming.events import VIEWS, BlockView, Done, TurnView, event_from_dict, view_from_dict
from streaming.lifecycle import LIVE, TERMINAL, State
from streaming.snapshot import Snapshot, fold, fold_view
from tests.torture.folded import snapshot_from_dict
from tests.torture.links import TRANSPORTS, Gone, Lost
from tests.torture.person import Person

_BACKOFF_FIRST_S, _BACKOFF_CAP_S = 0.3, 2.0
# As in connection.js: at a ping, when nothing was told for so long and an answer is under way, the page asks.
_QUIET_S, _QUIET_SPREAD_S = 25.0, 5.0


class Miss(Enum):
    """How a page does not get to know an end that is sent to it."""

    CONNECTION = auto()  # its connection dies as it carries the end
    FRAME = auto()  # the frame is gone, and the connection stays


@dataclass(frozen=True, slots=True)
class Habit:
    """How somebody reads."""

    transport: str  # a key of TRANSPORTS
    pause_s: float = 0.0  # after each frame: a slow reader
    leaves_after_s: float | None = None  # and comes back at once: a reader that reconnects in a loop
    joins_after_s: float = 0.0
    misses: Miss | None = None  # the first end


@dataclass(frozen=True, slots=True)
class Seen:
    """What one page knows of one generation at the end, and what it has shown before."""

    page: str
    snapshot: Snapshot | None  # None: it does not show the generation at all
    longest: str  # the longest text that was on the page
    first_end: State | None  # the first terminal state that it showed


class Page:
    """
    Follows one conversation until `run` is cancelled, or until it is told that the conversation is gone.

    `complaints` names what no page may ever be sent, whatever happens.
    """

    def __init__(self, person: Person, habit: Habit, name: str, rng: random.Random) -> None:
        self.name = name
        self.generations: dict[str, Snapshot] = {}
        self.complaints: list[str] = []
        self.syncs = self.connections = self.missed_ends = 0
        self.is_connected = self.is_gone = False
        self.heard_at: dict[str, float] = {}  # by generation: monotonic time of the newest event
        self.longest_pause_s: dict[str, float] = {}
        self.ended_at: dict[str, float] = {}  # by generation: monotonic time when the page showed its end
        self._person = person
        self._habit = habit
        self._rng = rng
        self._pause_s = habit.pause_s
        self._cursor = ""
        self._failures = 0
        self._needs_sync = True
        self._told_at = time.monotonic()
        self._longest: dict[str, str] = {}
        self._first_end: dict[str, State] = {}
        self._changed = asyncio.Event()

    async def run(self) -> None:
        await asyncio.sleep(self._habit.joins_after_s)
        with contextlib.suppress(Gone):
            while True:
                await self._visit()
        self.is_gone = True

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

    def seen(self, gen: str) -> Seen:
        return Seen(self.name, self.generations.get(gen), self._longest.get(gen, ""), self._first_end.get(gen))

    def forget_pauses(self) -> None:
        """Measure anew how long answers stand still."""
        self.heard_at.clear()
        self.longest_pause_s.clear()

    def hurry(self) -> None:
        """Read as fast as frames come from now on, so that a slow reader can be waited for."""
        self._pause_s = 0.0

    async def _visit(self) -> None:
        try:
            if self._needs_sync:
                await self._sync()
            await self._follow()
        except (Lost, httpx.HTTPError):
            self._failures += 1
            # After one failure the page goes on from its cursor; after more it asks what has become.
            self._needs_sync = self._needs_sync or self._failures > 2 or self._is_too_quiet()
            cap = min(_BACKOFF_CAP_S, _BACKOFF_FIRST_S * 2 ** min(self._failures, 10))
            await asyncio.sleep(self._rng.uniform(0, cap))

    async def _sync(self) -> None:
        """Take the document as the whole truth, also where it knows less."""
        try:
            document = await self._person.sync()
        except httpx.HTTPStatusError as exc:
            if self._person.deleting and exc.response.status_code == httpx.codes.NOT_FOUND:
                raise Gone from exc
            raise
        self.syncs += 1
        self._needs_sync = False
        self._told_at = time.monotonic()
        self._cursor = document["cursor"]
        self.generations.clear()
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
                        self.is_connected = True
                        if not await self._take(frame):
                            return
            except TimeoutError:
                return
            finally:
                self.is_connected = False

    async def _take(self, frame: dict[str, Any]) -> bool:
        """Take a frame. False: this connection is of no use any more."""
        if self._misses(frame):
            self.missed_ends += 1
            return self._habit.misses is Miss.FRAME
        if frame["type"] == "ping":
            return not self._is_too_quiet() or await self._doubt()
        if not self._apply(frame):
            self._needs_sync = True
            return False
        self._failures = 0
        self._told_at = time.monotonic()
        await asyncio.sleep(self._pause_s)
        return True

    def _misses(self, frame: dict[str, Any]) -> bool:
        """Say whether this is the end that the habit lets the page miss, once."""
        if self._habit.misses is None or self.missed_ends:
            return False
        return any(one["type"] == Done.type for one in frame.get("events", ()))

    def _is_too_quiet(self) -> bool:
        """A log that lost its end is as silent as a slow model. Only a sync tells them apart."""
        awaits = any(snapshot.state in LIVE for snapshot in self.generations.values())
        return awaits and time.monotonic() - self._told_at >= _QUIET_S

    async def _doubt(self) -> bool:
        await asyncio.sleep(self._rng.uniform(0, _QUIET_SPREAD_S))
        self._needs_sync = True
        return False

    def _apply(self, frame: dict[str, Any]) -> bool:
        """Apply a frame. False: something is missing, and the cursor has not moved."""
        match frame["type"]:
            case "resync":
                return False
            case "snapshot":
                known = [data for data in frame["generations"] if data["gen"] in self.generations]
                for data in known:
                    self._keep(snapshot_from_dict(data))
                fits = len(known) == len(frame["generations"])
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
            self.ended_at.setdefault(gen, time.monotonic())
        self.complaints += [f"{self.name}: {gen} {how}" for how in wrong_blocks(snapshot)]
        self._changed.set()

    def _measure(self, gen: str) -> None:
        now = time.monotonic()
        if gen in self.heard_at:
            pause = now - self.heard_at[gen]
            self.longest_pause_s[gen] = max(self.longest_pause_s.get(gen, 0.0), pause)
        self.heard_at[gen] = now


def wrong_blocks(snapshot: Snapshot) -> list[str]:
    """Say what of a page's blocks must never be so, at no time: more shown than there is, or a hole."""
    wrong = []
    if snapshot.shown > len(snapshot.text):
        wrong.append(f"shows {snapshot.shown} of {len(snapshot.text)} characters")
    html = [block.html for block in snapshot.blocks]
    while html and not html[-1]:
        html.pop()
    if "" in html:
        wrong.append(f"has no block {html.index('')} of {len(html)}, at seq {snapshot.seq}")
    return wrong
