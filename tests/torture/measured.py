"""Figures of a running site: memory, the upstream's clock, percentiles."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path

from tests.torture.account import Call, calls_of
from tests.torture.part import Part
from tests.torture.person import Asked
from tests.torture.site import Site

_LOOK_AGAIN_S = 0.02


def resident_mb(parts: Sequence[Part]) -> float:
    """Give the memory that these processes hold together."""
    lines = (line for part in parts for line in Path(f"/proc/{part.pid}/status").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


async def calls_for(site: Site, asked: Asked) -> list[Call]:
    """Give the calls for an answer's turn and model. A retry's are among them."""
    return [call for call in await calls_of(site) if (call.turn, call.script) == (asked.prompt, asked.model)]


async def until_called(site: Site, asked: Asked) -> Call:
    """Wait until the upstream has the generation's call."""
    while not (calls := await calls_for(site, asked)):
        await asyncio.sleep(_LOOK_AGAIN_S)
    return calls[-1]


async def until_closed(site: Site, asked: Asked) -> float:
    """Wait until the upstream has no open call of the generation; give when the last was closed, in monotonic ms."""
    while True:
        calls = await calls_for(site, asked)
        closed = [call.closed_mono for call in calls if call.closed_mono is not None]
        if calls and len(closed) == len(calls):
            return max(closed)
        await asyncio.sleep(_LOOK_AGAIN_S)


def percentile(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(len(ordered) * percent / 100) - 1)]
