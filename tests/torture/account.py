"""The upstream's own account of its calls, each with the generation that it was made for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from chatapp.history import GO_ON
from streaming.upstream.scripted_server import ABORTED
from tests.torture.hurts import How, Hurts, Place
from tests.torture.person import Asked
from tests.torture.scripts import ALL
from tests.torture.site import Site, Way

_BY_MODEL = {script.model: script.name for script in ALL.values()}


@dataclass(frozen=True, slots=True)
class Call:
    """One call. Times are of the machine's clocks, in ms; `outcome` is one of scripted_server.OUTCOMES."""

    n: int
    script: str
    asked: tuple[str, ...]  # all that the person said, by what the upstream was told
    way: Way
    outcome: str
    frames: int  # written, the head included
    opened_mono: float
    closed_mono: float | None = None
    closed_at: float | None = None

    @property
    def spoke(self) -> bool:
        return self.frames > 1

    @property
    def is_open(self) -> bool:
        return self.outcome == "open"

    @property
    def turn(self) -> str:
        """The prompt of the turn; a continuation says more after it."""
        return next((said for said in reversed(self.asked) if said != GO_ON), "")

    @property
    def text(self) -> str:
        """The whole text that this call would bring."""
        return ALL[self.script].text(self.asked[-1], self.n)

    @property
    def reasoning(self) -> str:
        return ALL[self.script].reasoning(self.asked[-1], self.n)

    def sent(self, until_mono: float = float("inf")) -> str:
        """Give what was sent, reasoning first, or what was due to be sent until some moment."""
        script = ALL[self.script]
        due_s = (until_mono - self.opened_mono) / 1000 - script.opens_after_s
        most = min(float(self.frames - 1), due_s * script.rate)
        return "".join(script.pieces(self.asked[-1], self.n)[: max(0, int(most))])


async def calls_of(site: Site) -> list[Call]:
    """Read the account, oldest call first."""
    async with httpx.AsyncClient(verify=False) as client:
        stats = (await client.get(f"http://127.0.0.1:{site.upstream_port}/stats")).json()
    return [_call(site.ways, record) for record in stats["calls"]]


async def forget_calls(site: Site) -> None:
    """Empty the account of what has ended."""
    async with httpx.AsyncClient(verify=False) as client:
        (await client.post(f"http://127.0.0.1:{site.upstream_port}/reset")).raise_for_status()


def whose(call: Call, asked: Iterable[Asked]) -> Asked | None:
    """
    Find the generation that a call was made for.

    A retry has its turn's prompt and model again; it is asked for when the answer before has ended, so a
    call belongs to the newest that was asked for by then.
    """
    same = [one for one in asked if (one.model, one.prompt) == (call.script, call.turn)]
    return max((one for one in same if one.at_mono <= call.opened_mono), key=lambda one: one.at_mono, default=None)


def by_generation(calls: Sequence[Call], asked: Sequence[Asked]) -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = {one.gen: [] for one in asked}
    for call in calls:
        owner = whose(call, asked)
        if owner is not None:
            found[owner.gen].append(call)
    return found


def in_time(calls: Iterable[Call], hurts: Hurts) -> list[Call]:
    """
    Leave out the requests that stood still on a silent way, and arrived when their callers had left.

    Whom they were made for cannot be told: the same may have been asked again meanwhile. They brought nothing.
    """
    return [call for call in calls if not _came_too_late(call, hurts)]


def _came_too_late(call: Call, hurts: Hurts) -> bool:
    silent = hurts.felt([Place.WORKER_TO_UPSTREAM], call.opened_mono, call.opened_mono, call.way.worker)
    return (call.outcome, call.frames) == (ABORTED, 0) and any(hurt.how is How.AWAY for hurt in silent)


def idle_workers(calls: Iterable[Call], prompts: Collection[str], workers: int) -> set[int]:
    """Name the workers that made none of the calls for these prompts."""
    return set(range(workers)) - {call.way.worker for call in calls if call.turn in prompts}


def _call(ways: Mapping[str, Way], record: Mapping[str, Any]) -> Call:
    times = (record[name] for name in ("opened_mono", "closed_mono", "closed_at"))
    script, asked, way = _BY_MODEL[record["model"]], tuple(record["asked"]), ways[record["host"]]
    return Call(record["n"], script, asked, way, record["outcome"], record["frames"], *times)
