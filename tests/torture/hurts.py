"""
What was done to the site, where and when: the only thing that may excuse an answer.

Parts and wires note it themselves, so that no scenario can forget to. Times are of the machine's
monotonic clock, in ms, as in the upstream's account.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

# What was hurt is well again a little later than the hurt was taken back: connections come back, timers catch up.
RECOVERY_MS = 5_000.0


class Place(StrEnum):
    REDIS = "Redis"
    UPSTREAM = "the upstream"
    WORKER = "worker"
    WEB = "web server"
    NGINX = "nginx"
    WORKER_TO_REDIS = "way from worker to Redis"
    WEB_TO_REDIS = "way from web server to Redis"
    WORKER_TO_UPSTREAM = "way from worker to upstream"
    NGINX_TO_WEB = "way from nginx to web server"
    FRONT = "way from pages to nginx"
    DATABASE = "database"


class How(StrEnum):
    ENDED = "ended"  # killed or told to end, and started again
    AWAY = "away"  # frozen or silenced: nothing happens, and nobody is told
    DISTURBED = "disturbed"  # cut, slow, refusing or locked


@dataclass(slots=True)
class Hurt:
    """`number` says which of several workers, web servers or ways."""

    place: Place
    how: How
    number: int
    began: float
    over: float = math.inf

    @property
    def lasted(self) -> float:
        return self.over - self.began

    def heal(self) -> None:
        self.over = min(self.over, now_ms())


@dataclass(slots=True)
class Hurts:
    """All that was done so far."""

    noted: list[Hurt] = field(default_factory=list)

    def begin(self, place: Place, how: How, number: int = 0) -> Hurt:
        """Note that something is about to be hurt; until it heals it counts as hurt."""
        hurt = Hurt(place, how, number, now_ms())
        self.noted.append(hurt)
        return hurt

    def felt(
        self,
        places: Iterable[Place],
        since: float,
        until: float,
        number: int | None = None,
        recovery: float = RECOVERY_MS,
    ) -> list[Hurt]:
        """
        Give what could be felt at one of these places within a time, recovery included.

        With a `number` only what concerns this worker or web server; Redis and the like concern all.
        """
        wanted = set(places)
        return [
            hurt
            for hurt in self.noted
            if hurt.place in wanted
            and (number is None or hurt.place not in _NUMBERED or hurt.number == number)
            and hurt.began <= until
            and hurt.over + recovery >= since
        ]

    def forget(self, before: float) -> None:
        """Drop what was over long before."""
        self.noted = [hurt for hurt in self.noted if hurt.over + RECOVERY_MS >= before]


_NUMBERED = {
    Place.WORKER, Place.WEB, Place.WORKER_TO_REDIS, Place.WEB_TO_REDIS, Place.WORKER_TO_UPSTREAM, Place.NGINX_TO_WEB,
}  # fmt: skip


def now_ms() -> float:
    return time.monotonic() * 1000


def to_monotonic(epoch_ms: float) -> float:
    """Give the moment of the monotonic clock that the machine's other clock calls so."""
    return epoch_ms - (time.time() * 1000 - now_ms())
