"""What is to be kept running."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

# Is the process with this id ready? Called again and again, so it answers False rather than raise.
Probe: TypeAlias = Callable[[int], Awaitable[bool]]
# The process ended by itself before it was ready. Removes the cause if it can, and gives what is to be told, or "".
Mend: TypeAlias = Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Service:
    """
    One process, or with `ready=None` one errand: it must end with exit code 0 before others go on.

    `awaited` completes the sentence "waiting for …". `after` names services that must be ready first; one
    that is not among those run is taken as being there. `grace_s` lies between SIGTERM and SIGKILL.
    """

    name: str
    command: Sequence[str]
    awaited: str
    ready: Probe | None
    after: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)  # The whole environment, not only what is added.
    folder: Path | None = None
    grace_s: float = 5.0
    mend: Mend | None = None

    @property
    def is_errand(self) -> bool:
        return self.ready is None


def in_stages(services: Sequence[Service]) -> list[list[Service]]:
    """Order services so that each stage needs only earlier ones. Stopping goes the other way."""
    stages: list[list[Service]] = []
    left = list(services)
    while left:
        names = {service.name for service in left}
        stage = [service for service in left if not names.intersection(service.after)]
        if not stage:
            raise ValueError(f"these services wait for each other: {', '.join(sorted(names))}")
        stages.append(stage)
        left = [service for service in left if service not in stage]
    return stages
