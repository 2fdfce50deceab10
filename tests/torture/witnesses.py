"""Asks everybody who knows something of the generations: the database, the log, the upstream, the pages."""

from __future__ import annotations

from streaming.frames import START_CURSOR
from streaming.log.ports import Log, Logged, Ref
from tests.torture.account import by_generation, calls_of, in_time
from tests.torture.database import archives_of, rows_of
from tests.torture.evidence import Evidence
from tests.torture.person import Person
from tests.torture.scene import Scene

_END_OF_TIME = f"{10**14}-0"
_ALL_ENTRIES = 1_000_000


async def entries_of(log: Log, conversation: str) -> list[Logged]:
    return await log.range(conversation, START_CURSOR, _END_OF_TIME, _ALL_ENTRIES)


def refs_of(person: Person) -> list[Ref]:
    return [Ref(one.conversation, one.number, one.gen) for one in person.asked]


async def gather(scene: Scene, log: Log) -> list[Evidence]:
    """Ask all witnesses about every generation that has a row; one that has none is the conversation's matter."""
    database = scene.site.database
    gens = [asked.gen for asked in scene.asked()]
    rows, archives = rows_of(database, gens), archives_of(database, gens)
    calls = by_generation(in_time(await calls_of(scene.site), scene.site.hurts), scene.asked())
    found: list[Evidence] = []
    for person in scene.staying():
        conversation = person.conversation
        entries = await entries_of(log, conversation)
        leases = dict(zip(person.asked, await log.leases(refs_of(person)), strict=True))
        found += (
            Evidence(
                asked,
                rows[asked.gen],
                archives.get(asked.gen),
                tuple(one for one in entries if one.entry.number == asked.number),
                leases[asked],
                tuple(one for one in scene.samples[conversation] if asked.number in one.generations),
                tuple(calls[asked.gen]),
                tuple(page.seen(asked.gen) for page in scene.pages[conversation]),
                tuple(stop for stop in person.stops if stop.gen == asked.gen),
                tuple(scene.losses[asked.gen]),
                scene.site.hurts,
            )
            for asked in person.asked
            if asked.gen in rows
        )
    return found
