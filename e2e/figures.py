"""What the browser tests measure, beyond what they assert."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator


class Figures:
    """Milliseconds, by what was measured."""

    def __init__(self) -> None:
        self._measured: dict[str, list[float]] = defaultdict(list)

    def add(self, name: str, ms: float) -> None:
        self._measured[name].append(ms)

    def lines(self) -> Iterator[str]:
        for name, values in self._measured.items():
            yield f"{name}: p50 {percentile(values, 50):.0f} ms, p99 {percentile(values, 99):.0f} ms, n = {len(values)}"


def percentile(values: list[float], percent: int) -> float:
    """Give the smallest value that so many percent of them do not exceed."""
    return sorted(values)[-(-len(values) * percent // 100) - 1]


def patience() -> float:
    """
    Say how many times as long as on an idle machine things may take on this one, now.

    What is promised in seconds is promised for a machine that has not several times the work it can do.
    """
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
