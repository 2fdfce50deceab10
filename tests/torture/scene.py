"""What goes on while faults strike: who asked for what, who reads, and what the suite has to answer for."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, cast

from redis.exceptions import RedisError

from streaming.lifecycle import LIVE, State
from streaming.log.ports import LogSnapshot
from streaming.log.redis import log_key
from tests.torture.account import calls_of, whose
from tests.torture.database import states_of
from tests.torture.evidence import Loss, Lost
from tests.torture.hurts import now_ms
from tests.torture.page import Page
from tests.torture.person import Asked, Person
from tests.torture.site import Site


class Scene:
    """One scenario's people and pages, and what was destroyed of their answers."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.people: list[Person] = []
        self.pages: dict[str, list[Page]] = {}  # by conversation
        self.samples: dict[str, list[LogSnapshot]] = defaultdict(list)  # by conversation
        self.losses: dict[str, list[Loss]] = defaultdict(list)  # by generation

    def staying(self) -> list[Person]:
        """List those who did not ask to delete their conversation."""
        return [person for person in self.people if not person.deleting]

    def asked(self) -> list[Asked]:
        """List every generation of those who stay."""
        return [asked for person in self.staying() for asked in person.asked]

    def live(self) -> list[Asked]:
        """List the generations that have not ended, by the database."""
        return self._in_state(LIVE)

    def queued(self) -> list[Asked]:
        """List those that nobody has begun to write."""
        return self._in_state({State.QUEUED})

    async def speaking(self, worker: int | None = None) -> list[Asked]:
        """List those that are in mid-stream, by the upstream's account: it has begun to speak and goes on."""
        calls = [call for call in await calls_of(self.site) if call.is_open and call.spoke]
        asked = self.asked()
        found = [whose(call, asked) for call in calls if worker in (None, call.way.worker)]
        return [one for one in found if one is not None]

    async def watched(self) -> list[Asked]:
        """List those in mid-stream that some page is following just now."""
        return [one for one in await self.speaking() if any(page.is_connected for page in self.pages[one.conversation])]

    def lose(self, what: Lost, asked: Iterable[Asked]) -> None:
        """Note what was destroyed, once it is."""
        loss = Loss(what, now_ms(), time.time() * 1000)
        for one in asked:
            self.losses[one.gen].append(loss)

    async def destroy(self, victim: Asked, keys: Iterable[str]) -> bool:
        """Delete keys of one generation past every wire. Says whether any was there: only that was destroyed."""
        async with self.site.redis.lock:
            there = {key for key in keys if await self._delete(key)}
        log = log_key(victim.conversation)
        if log in there:
            # All its generations have their entries in it.
            self.lose(Lost.LOG, [asked for asked in self.asked() if asked.conversation == victim.conversation])
        if there - {log}:
            self.lose(Lost.STATE, [victim])
        return bool(there)

    async def redis_command(self, *command: str) -> Any:
        """Speak to Redis past every wire. If it is away, that is another fault's doing."""
        try:
            return await cast("Any", self.site.client).execute_command(*command)
        except (RedisError, OSError):
            return None

    async def _delete(self, key: str) -> bool:
        deleted = await self.redis_command("DEL", key)
        # Another fault may have killed the connection before the answer came: then it has to count as deleted.
        return deleted is None or bool(deleted)

    def _in_state(self, states: Iterable[State]) -> list[Asked]:
        asked, wanted = self.asked(), set(states)
        known = states_of(self.site.database, [one.gen for one in asked])
        return [one for one in asked if known.get(one.gen) in wanted]
