"""Plays one schedule on a running site, and judges it."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from random import Random

import httpx

from tests.torture.faults import BY_NAME
from tests.torture.invariants import broken
from tests.torture.person import Person
from tests.torture.plan import Blow, Plan
from tests.torture.plan import Talk as PlannedTalk
from tests.torture.site import Site
from tests.torture.stage import ENDS_WITHIN_S, PAGES_KNOW_WITHIN_S, Stage, staged


@dataclass
class Outcome:
    """What became of one schedule."""

    seed: int
    generations: int = 0
    states: Counter[str] = field(default_factory=Counter)
    struck: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    pages: int = 0
    syncs: int = 0
    connections: int = 0
    samples: int = 0
    settled_s: float = 0.0  # from the end of the faults to the last generation's end


async def play(site: Site, plan: Plan) -> Outcome:
    """Play a schedule, let the site settle, and check every promise."""
    outcome = Outcome(plan.seed)
    async with staged(site, f"s{plan.seed}") as stage:
        await _perform(stage, plan, outcome)
        await _settle(stage, outcome)
        found = await stage.evidence()
        outcome.broken += [line for evidence in found for line in broken(evidence)] + stage.complaints()
        outcome.generations = len(found)
        outcome.states.update(evidence.row.state.value for evidence in found)
        _count(stage, outcome)
    await _forget(site)
    return outcome


async def _perform(stage: Stage, plan: Plan, outcome: Outcome) -> None:
    parts = [*(_talk(stage, talk) for talk in plan.talks), *(_strike(stage, blow) for blow in plan.blows)]
    for result in await asyncio.gather(*parts, return_exceptions=True):
        if isinstance(result, BaseException):
            outcome.broken.append(f"the schedule could not be played: {result!r}")
    await stage.site.heal()


async def _talk(stage: Stage, planned: PlannedTalk) -> None:
    await asyncio.sleep(planned.at_s)
    talk = await stage.talk(planned.turns[0], planned.habits)
    await asyncio.gather(*(_stop(talk.person, talk.asked[pane].gen, after_s) for pane, after_s in planned.stops))
    for models in planned.turns[1:]:
        # Somebody sees at once that the last turn has ended, however slow the readers are that the suite has.
        await stage.until_ended(ENDS_WITHIN_S * 2, talk.person)
        await stage.ask_again(talk, models)


async def _stop(person: Person, gen: str, after_s: float) -> None:
    await asyncio.sleep(after_s)
    await person.stop(gen)


async def _strike(stage: Stage, blow: Blow) -> None:
    await asyncio.sleep(blow.at_s)
    scene = stage.scene
    (scene.struck if scene.running() else scene.missed)[blow.fault] += 1
    await BY_NAME[blow.fault](scene, Random(blow.seed))


async def _settle(stage: Stage, outcome: Outcome) -> None:
    try:
        outcome.settled_s = await stage.until_ended()
    except TimeoutError:
        outcome.broken.append(f"not all generations ended within {ENDS_WITHIN_S:g} s after the faults")
        return
    try:
        await stage.until_known()
    except TimeoutError:
        outcome.broken.append(f"a page did not know of an end within {PAGES_KNOW_WITHIN_S:g} s")


def _count(stage: Stage, outcome: Outcome) -> None:
    outcome.struck, outcome.missed = stage.scene.struck, stage.scene.missed
    pages = [page for pages in stage.scene.pages.values() for page in pages]
    outcome.pages, outcome.samples = len(pages), sum(map(len, stage.samples.values()))
    outcome.syncs, outcome.connections = sum(p.syncs for p in pages), sum(p.connections for p in pages)


async def _forget(site: Site) -> None:
    """Empty the upstream's account of what has ended."""
    async with httpx.AsyncClient(verify=False) as client:
        (await client.post(f"http://127.0.0.1:{site.upstream_port}/reset")).raise_for_status()
