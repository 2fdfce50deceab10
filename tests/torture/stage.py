"""What every scenario does: people come and ask, pages read, and in the end all witnesses are heard."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from streaming.errors import LogUnavailable
from streaming.lifecycle import TERMINAL
from streaming.log.redis import RedisLog
from tests.torture.account import calls_of, idle_workers
from tests.torture.database import states_of
from tests.torture.evidence import Evidence
from tests.torture.hurts import now_ms
from tests.torture.invariants import broken, is_waiting
from tests.torture.judging import wrong_with_conversations
from tests.torture.page import Habit, Page
from tests.torture.person import Asked, Person
from tests.torture.scene import Scene
from tests.torture.site import Site
from tests.torture.witnesses import gather, refs_of

# A lease, the reaper's round, its quiet time after Redis was away, and a repeated message or two.
ENDS_WITHIN_S = 45.0
# A page that reads on learns of an end at once; one whose connection hangs, by the server's ping; and one
# whose log lost the end, at the second ping in a row.
PAGES_KNOW_WITHIN_S = 45.0
# A worker that lost its way to the broker comes back to it, and takes tasks again.
CONSUMES_WITHIN_S = 60.0
# A committed end that the log misses is written to it by the reaper.
REPAIRED_WITHIN_S = 20.0
LOOK_EVERY_S = 0.25
_SAMPLE_EVERY_S = 0.4
_WEBSOCKET = (Habit("websocket"),)


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation, its readers, and what was asked first."""

    person: Person
    pages: tuple[Page, ...]
    asked: tuple[Asked, ...]

    @property
    def page(self) -> Page:
        return self.pages[0]

    @property
    def gen(self) -> str:
        return self.asked[0].gen

    def text(self) -> str:
        """Give what the first page shows of the first answer."""
        snapshot = self.page.generations.get(self.gen)
        return snapshot.text if snapshot else ""


class Stage:
    """People and pages on a site. `judge` may be called once all that was asked has ended."""

    def __init__(self, site: Site, name: str) -> None:
        self.site = site
        self.scene = Scene(site)
        self.log = RedisLog.connect(site.private_redis.url)
        self._name = name
        self._rng = random.Random(name)
        self._reading = [asyncio.create_task(self._sample(), name="sampling")]

    async def talk(self, models: Sequence[str], habits: Sequence[Habit] = _WEBSOCKET) -> Talk:
        """Let somebody come, open the conversation on so many pages, and ask."""
        person = await Person.arrive(self.site)
        number = len(self.scene.people)
        self.scene.people.append(person)
        pages = [Page(person, habit, f"page {n} of {number} ({habit})", self._rng) for n, habit in enumerate(habits)]
        self.scene.pages[person.conversation] = pages
        self._reading += [asyncio.create_task(page.run(), name=page.name) for page in pages]
        asked = await person.ask(f"{self.mark}c{number} t0 Zürich", models)
        return Talk(person, tuple(pages), tuple(asked))

    async def talks(self, count: int, model: str, habits: Sequence[Habit] = _WEBSOCKET) -> list[Talk]:
        """Let so many people ask one model each, and wait until all of them have something to read."""
        talks = await asyncio.gather(*(self.talk([model], habits) for _ in range(count)))
        await asyncio.gather(*(talk.page.until(talk.gen, 10) for talk in talks))
        return talks

    async def ask_again(self, talk: Talk, models: Sequence[str]) -> list[Asked]:
        number = self.scene.people.index(talk.person)
        return await talk.person.ask(f"{self.mark}c{number} t{talk.person.turns} Zürich", models)

    @property
    def mark(self) -> str:
        """What every prompt of this stage begins with, and no other's."""
        return f"{self._name} "

    @property
    def gens(self) -> list[str]:
        return [asked.gen for asked in self.scene.asked()]

    async def until_ended(self, within_s: float = ENDS_WITHIN_S, person: Person | None = None) -> float:
        """
        Wait until the database knows the end of all that was asked, or that one person asked; give the seconds.

        Raises:
            TimeoutError
        """
        began = time.monotonic()
        gens = [asked.gen for asked in person.asked] if person else self.gens
        async with asyncio.timeout(within_s):
            while not TERMINAL.issuperset(states_of(self.site.database, gens).values()):
                await asyncio.sleep(LOOK_EVERY_S)
        return time.monotonic() - began

    async def until_known(self, within_s: float = PAGES_KNOW_WITHIN_S) -> None:
        """
        Wait until every page shows every end. Slow readers need not be slow any more.

        Raises:
            TimeoutError
        """
        for pages in self.scene.pages.values():
            for page in pages:
                page.hurry()
        async with asyncio.timeout(within_s):
            for person in self.scene.staying():
                for page in self.scene.pages[person.conversation]:
                    await page.until_ended([asked.gen for asked in person.asked])

    async def until_each_worker_drives(self, within_s: float = CONSUMES_WITHIN_S) -> float:
        """
        Ask until each worker has called the upstream for one of the questions; give the seconds.

        Raises:
            TimeoutError: one of them lives and takes no tasks.
        """
        began = now_ms()
        talks = await asyncio.gather(*(self.talk(["count-few"]) for _ in self.site.workers))
        while idle := await self._idle(talks):
            if now_ms() - began > within_s * 1000:
                raise TimeoutError(f"workers {sorted(idle)} took no task within {within_s:g} s")
            for talk in talks:
                await self.until_ended(person=talk.person)
            await asyncio.gather(*(self.ask_again(talk, ["count-few"]) for talk in talks))
        return (now_ms() - began) / 1000

    async def evidence(self) -> list[Evidence]:
        """Hear all witnesses, once the log has what the reaper writes to it, or had the time for it."""
        give_up_at = time.monotonic() + REPAIRED_WITHIN_S
        while True:
            found = await gather(self.scene, self.log)
            if not any(map(is_waiting, found)) or time.monotonic() > give_up_at:
                return found
            await asyncio.sleep(LOOK_EVERY_S)

    async def judge(self) -> list[str]:
        """Wait for every end; give what promises were broken."""
        await self.until_ended()
        await self.until_known()
        return await self.wrong(await self.evidence())

    async def wrong(self, found: Sequence[Evidence]) -> list[str]:
        """Give what promises were broken, by the evidence and otherwise."""
        generations = [line for one in found for line in broken(one)]
        return [*generations, *await wrong_with_conversations(self.scene, self.log, self.mark), *self.complaints()]

    def complaints(self) -> list[str]:
        pages = [page for pages in self.scene.pages.values() for page in pages]
        failed = [f"{task.get_name()} failed: {task.exception()!r}" for task in self._reading if _failed(task)]
        return failed + [complaint for page in pages for complaint in page.complaints] + self.site.own_endings()

    async def close(self) -> None:
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)
        for person in self.scene.people:
            await person.leave()
        await self.log.close()

    async def _idle(self, talks: Sequence[Talk]) -> set[int]:
        prompts = {asked.prompt for talk in talks for asked in talk.person.asked}
        return idle_workers(await calls_of(self.site), prompts, len(self.site.workers))

    async def _sample(self) -> None:
        """Take the log's snapshot of a conversation now and then, as a late reader would."""
        while True:
            await asyncio.sleep(_SAMPLE_EVERY_S)
            live = self.scene.live()
            if not live:
                continue
            conversation = self._rng.choice(live).conversation
            person = next(one for one in self.scene.people if one.conversation == conversation)
            with contextlib.suppress(LogUnavailable):
                self.scene.samples[conversation].append(await self.log.snapshot(conversation, refs_of(person)))


@contextlib.asynccontextmanager
async def staged(site: Site, name: str) -> AsyncIterator[Stage]:
    """Give a stage; `name` is part of every prompt, so it must be used once only on a site."""
    stage = Stage(site, name)
    try:
        yield stage
    finally:
        await stage.close()


def _failed(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None
