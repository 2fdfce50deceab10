"""Reads all the logs that a web process watches, once for all their readers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from streaming.errors import LogUnavailable
from streaming.log.codec import wire
from streaming.log.ports import Kind, Log, Logged

logger = logging.getLogger(__name__)

BLOCK_MS = 3_000
# Between two reads, for each log that is watched, within bounds: naming many logs in a read costs more
# than waiting a little for more to read. The upper bound is the time of one frame.
PACE_S, PACE_MIN_S, PACE_MAX_S = 0.0001, 0.001, 0.016
RETRY_S = (0.05, 0.2, 0.5, 1.0)


@dataclass(slots=True)
class News:
    """One entry as frames carry it. `json` is None when the generation's UUID is not known here."""

    cursor: str
    number: int
    kind: Kind
    json: str | None


Sink: TypeAlias = Callable[[Sequence[News]], None]


@dataclass(slots=True)
class _Watched:
    cursor: str
    names: dict[int, str] = field(default_factory=dict)
    sinks: list[Sink] = field(default_factory=list)


class Tailer:
    """
    Reads every watched log once, however many followers it has, and encodes each entry once.

    `run` serves until cancelled; `watch` and `unwatch` may be called at any time.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._watched: dict[str, _Watched] = {}
        self._changed = asyncio.Event()
        self._tail = log.tail()

    async def watch(self, conversation: str, names: Mapping[int, str], sink: Sink) -> str:
        """
        Hand every entry after the returned cursor to `sink`, which must be quick.

        Raises:
            LogUnavailable
        """
        watched = self._watched.get(conversation)
        if watched is None:
            position, _ = await self._log.position(conversation)
            # Another follower may have come first while the log was asked.
            watched = self._watched.setdefault(conversation, _Watched(position))
        watched.names.update(names)
        watched.sinks.append(sink)
        if len(watched.sinks) == 1:
            try:
                self._changed.set()
                # What came between its position and now would otherwise wait for something newer, or for the end of
                # this wait, as it does while Redis takes no writes.
                with contextlib.suppress(LogUnavailable):
                    await self._tail.interrupt()
            except BaseException:
                # Whoever is cancelled here never came to be a follower, and will not unwatch.
                self.unwatch(conversation, sink)
                raise
        return watched.cursor

    def unwatch(self, conversation: str, sink: Sink) -> None:
        watched = self._watched[conversation]
        watched.sinks.remove(sink)
        if not watched.sinks:
            # The read under way may still hold this log; what it brings is then nobody's.
            del self._watched[conversation]

    def encode(self, conversation: str, logged: Sequence[Logged]) -> list[News]:
        """Encode entries of a watched log, learning the generations' UUIDs from their starts."""
        names = self._watched[conversation].names
        return [_news(one, names) for one in logged if one.entry.kind is not Kind.UNKNOWN]

    def name(self, conversation: str, number: int) -> str:
        """Give the UUID of a generation that was seen in a watched log."""
        return self._watched[conversation].names[number]

    async def run(self) -> None:
        failures = 0
        try:
            while True:
                await self._until_watched()
                try:
                    news = await self._read()
                except LogUnavailable as exc:
                    if failures == 0:
                        logger.warning("followers wait for the log: %s", exc)
                    await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S) - 1)])
                    failures += 1
                    continue
                failures = 0
                for conversation, logged in news.items():
                    self._hand_out(conversation, logged)
                await asyncio.sleep(min(max(PACE_MIN_S, PACE_S * len(self._watched)), PACE_MAX_S))
        finally:
            await self._tail.close()

    async def _until_watched(self) -> None:
        while not self._watched:
            self._changed.clear()
            await self._changed.wait()

    async def _read(self) -> dict[str, list[Logged]]:
        await self._tail.wait(BLOCK_MS)
        # Only now: whoever joined while this waited is read for too.
        cursors = {conversation: watched.cursor for conversation, watched in self._watched.items()}
        return await self._tail.read(cursors)

    def _hand_out(self, conversation: str, logged: Sequence[Logged]) -> None:
        watched = self._watched.get(conversation)
        if watched is None:
            return
        news = self.encode(conversation, logged)
        watched.cursor = logged[-1].cursor
        for sink in tuple(watched.sinks):
            sink(news)


def _news(logged: Logged, names: dict[int, str]) -> News:
    entry = logged.entry
    if entry.kind is Kind.START:
        names[entry.number] = json.loads(entry.payload)["gen"]
    if entry.kind is Kind.NOTICE:
        return News(logged.cursor, 0, entry.kind, entry.payload)
    gen = names.get(entry.number)
    return News(logged.cursor, entry.number, entry.kind, None if gen is None else wire(gen, logged))
