"""The shape of a fault, and whom it may catch."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from random import Random
from typing import TypeAlias

from tests.torture.person import Asked
from tests.torture.scene import Scene

Caught: TypeAlias = Collection[Asked]
Fault: TypeAlias = Callable[[Scene, Random], Awaitable[Caught]]
# Asked as the last thing before a fault lands.
Reach: TypeAlias = Callable[[], Awaitable[Caught]]


def driven_by(scene: Scene, worker: int) -> Reach:
    return lambda: scene.speaking(worker)
