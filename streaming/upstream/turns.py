"""Who may call a model next, where only so many answers may be under way: owners take turns."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol


class Place(Protocol):
    """A place in the queue. Whoever took it gives it back, whether its turn came or not."""

    @property
    def granted(self) -> asyncio.Future[None]:
        """Is done when the turn has come."""
        ...

    def give_back(self) -> None:
        """Let the next one have its turn. Idempotent."""
        ...


class Turns:
    """
    At most `most` turns at a time in this process.

    Among those who wait, owners take turns, and each owner's own are served in their order: ten panes
    of one person delay another's single one by one answer, not by ten.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._running = 0
        # In the order in which owners will be served next.
        self._waiting: dict[str, deque[_Place]] = {}

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    def ask(self, owner: str) -> Place:
        """Take a place in the queue."""
        place = _Place(self, owner)
        self._waiting.setdefault(owner, deque()).append(place)
        self._serve()
        return place

    def leave(self, place: _Place) -> None:
        if place.granted.done():
            self._running -= 1
        else:
            self._withdraw(place)
        self._serve()

    def _serve(self) -> None:
        while self._running < self._most and self._waiting:
            owner, places = next(iter(self._waiting.items()))
            place = places.popleft()
            del self._waiting[owner]
            if places:
                self._waiting[owner] = places  # To the end.
            self._running += 1
            place.granted.set_result(None)

    def _withdraw(self, place: _Place) -> None:
        places = self._waiting[place.owner]
        places.remove(place)
        if not places:
            del self._waiting[place.owner]


class _Place:
    def __init__(self, turns: Turns, owner: str) -> None:
        self.owner = owner
        self.granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns: Turns | None = turns

    def give_back(self) -> None:
        turns, self._turns = self._turns, None
        if turns is not None:
            turns.leave(self)


class AtOnce:
    """A place where nobody has to wait."""

    def __init__(self) -> None:
        self.granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.granted.set_result(None)

    def give_back(self) -> None:
        """There is nothing to give back."""
