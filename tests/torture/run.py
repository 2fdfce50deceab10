"""Plays one schedule on a running site, and judges it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random

from streaming.lifecycle import State
from tests.torture.account import forget_calls
from tests.torture.database import rows_of
from tests.torture.faults import BY_NAME
from tests.torture.hurts import now_ms
from tests.torture.person import Asked, Person
from tests.torture.plan import Blow, Plan
from tests.torture.plan import Talk as PlannedTalk
from tests.torture.site import Site
from tests.torture.stage import ENDS_WITHIN_S, PAGES_KNOW_WITHIN_S, Stage, staged


@dataclass
class Outcome:
    """What became of one schedule. `caught` counts answers, `struck` faults that caught any, `missed` the others."""

    seed: int
    generations: int = 0
    states: Counter[str] = field(default_factory=Counter)
    struck: Counter[str] = field(default_factory=Counter)
    caught: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    did: Counter[str] = field(default_factory=Counter)  # what people did besides asking
    broken: list[str] = field(default_factory=list)
    pages: int = 0
    syncs: int = 0
    connections: int = 0
    samples: int = 0
    refusals: int = 0
    settled_s: float = 0.0  # from the end of the faults to the last generation's end
    consumed_s: float = 0.0  # from then until each worker was seen to drive an answer


async def play(site: Site, plan: Plan) -> Outcome:
    """Play a schedule, let the site settle, and check every promise."""
    outcome, began = Outcome(plan.seed), now_ms()
    async with staged(site, f"s{plan.seed}") as stage:
        await _perform(stage, plan, outcome)
        await _settle(stage, outcome)
        found = await stage.evidence()
        outcome.broken += await stage.wrong(found)
        outcome.generations = len(found)
        outcome.states.update(evidence.row.state.value for evidence in found)
        _count(stage, outcome)
    await forget_calls(site)
    site.hurts.forget(began)
    return outcome


async def _perform(stage: Stage, plan: Plan, outcome: Outcome) -> None:
    talks = [_talk(stage, talk, outcome) for talk in plan.talks]
    blows = [_strike(stage, blow, outcome) for blow in plan.blows]
    for result in await asyncio.gather(*talks, *blows, return_exceptions=True):
        if isinstance(result, BaseException):
            outcome.broken.append(f"the schedule could not be played: {result!r}")
    await stage.site.heal()


async def _talk(stage: Stage, planned: PlannedTalk, outcome: Outcome) -> None:
    await asyncio.sleep(planned.at_s)
    talk = await stage.talk(planned.turns[0], planned.habits)
    person, did = talk.person, outcome.did
    wishes = [_later(s, did, "stop", partial(person.stop, talk.asked[pane].gen)) for pane, s in planned.stops]
    if planned.stops_all_s is not None:
        wishes.append(_later(planned.stops_all_s, did, "stop all", person.stop_all))
    if planned.deletes_s is not None:
        wishes.append(_later(planned.deletes_s, did, "delete", person.delete))
    await asyncio.gather(*wishes)
    if planned.again:
        await _until_ended(stage, person)
        await asyncio.gather(*(_again(stage, person, talk.asked[pane], kind, did) for pane, kind in planned.again))
    for models in planned.turns[1:]:
        await _until_ended(stage, person)
        await stage.ask_again(talk, models)


async def _until_ended(stage: Stage, person: Person) -> None:
    """Somebody sees at once that an answer has ended, however slow the readers are that the suite has."""
    await stage.until_ended(ENDS_WITHIN_S * 2, person)


async def _later(after_s: float, did: Counter[str], name: str, wish: Callable[[], Awaitable[object]]) -> None:
    await asyncio.sleep(after_s)
    await wish()
    did[name] += 1


async def _again(stage: Stage, person: Person, before: Asked, kind: str, did: Counter[str]) -> None:
    row = rows_of(stage.site.database, [before.gen])[before.gen]
    # What is whole, or has no text, cannot be continued.
    kind = kind if row.text and row.state is not State.COMPLETED else "retry"
    await person.again(before, kind)
    did[kind] += 1


async def _strike(stage: Stage, blow: Blow, outcome: Outcome) -> None:
    await asyncio.sleep(blow.at_s)
    caught = await BY_NAME[blow.fault](stage.scene, Random(blow.seed))
    (outcome.struck if caught else outcome.missed)[blow.fault] += 1
    outcome.caught[blow.fault] += len(caught)


async def _settle(stage: Stage, outcome: Outcome) -> None:
    try:
        outcome.settled_s = await stage.until_ended()
    except TimeoutError:
        outcome.broken.append(f"not all generations ended within {ENDS_WITHIN_S:g} s after the faults")
        return
    try:
        outcome.consumed_s = await stage.until_each_worker_drives()
    except TimeoutError as exc:
        outcome.broken.append(f"a worker does not drive: {exc or 'a question to it was not answered'}")
    try:
        await stage.until_known()
    except TimeoutError:
        outcome.broken.append(f"a page did not know of an end within {PAGES_KNOW_WITHIN_S:g} s")


def _count(stage: Stage, outcome: Outcome) -> None:
    scene = stage.scene
    pages = [page for pages in scene.pages.values() for page in pages]
    outcome.pages, outcome.samples = len(pages), sum(map(len, scene.samples.values()))
    outcome.syncs, outcome.connections = sum(p.syncs for p in pages), sum(p.connections for p in pages)
    outcome.did["miss an end"] = sum(page.missed_ends for page in pages)
    outcome.refusals = sum(len(person.refusals) for person in scene.people)
