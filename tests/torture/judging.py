"""What is wrong with whole conversations of a scenario, and with what the site answered."""

from __future__ import annotations

from streaming.log.redis import RedisLog
from tests.torture.account import Call, by_generation, calls_of, whose
from tests.torture.database import held_of
from tests.torture.invariants.conversations import (
    Deleted,
    Held,
    every_call_was_asked_for,
    holds_what_was_asked,
    nothing_is_left,
    refusals_are_explained,
)
from tests.torture.person import Person
from tests.torture.scene import Scene
from tests.torture.witnesses import entries_of, refs_of


async def wrong_with_conversations(scene: Scene, log: RedisLog, mark: str) -> list[str]:
    """Give what promises were broken; `mark` begins every prompt of the scenario."""
    calls = await calls_of(scene.site)
    everybodys = [asked for person in scene.people for asked in person.asked]
    strangers = [call for call in calls if whose(call, everybodys) is None]
    wrong = [f"every_call_was_asked_for: {how}" for how in every_call_was_asked_for(strangers, mark)]
    for person in scene.people:
        wrong += [f"refusals_are_explained: {how}" for how in refusals_are_explained(person.refusals, scene.site.hurts)]
        if person.deleted_mono is None:
            who = person.conversation
            wrong += [f"holds_what_was_asked: {who}: {how}" for how in holds_what_was_asked(_held(scene, person))]
        else:
            deleted = await _deleted(scene, log, person, person.deleted_mono, calls)
            wrong += [f"nothing_is_left: {how}" for how in nothing_is_left(deleted, scene.site.hurts)]
    return wrong


def _held(scene: Scene, person: Person) -> Held:
    turns, generations = held_of(scene.site.database, person.conversation)
    return Held(person.conversation, person.turns, person.asked, turns, generations)


async def _deleted(scene: Scene, log: RedisLog, person: Person, at_mono: float, calls: list[Call]) -> Deleted:
    conversation = person.conversation
    own = [call for found in by_generation(calls, person.asked).values() for call in found]
    logged = (await log.snapshot(conversation, refs_of(person))).generations
    return Deleted(_held(scene, person), at_mono, own, await entries_of(log, conversation), logged)
