"""What goes on while faults strike: who asked for what, who reads, and what the suite has to answer for."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, cast

from redis.exceptions import RedisError

from streaming.lifecycle import TERMINAL, State
from tests.torture.evidence import Harm
from tests.torture.page import Page
from tests.torture.person import Asked, Person
from tests.torture.site import Site


class Scene:
    """`struck` counts the faults that began while some answer was being written; `missed` the others."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.people: list[Person] = []
        self.pages: dict[str, list[Page]] = {}  # by conversation
        self.struck: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self.upstream_way = False  # The way to the upstream was disturbed at some time.
        self._harms: dict[str, Harm] = {}

    def live(self) -> list[Asked]:
        """List the generations that no page has seen end."""
        return [asked for asked in self._all() if self._state(asked) not in TERMINAL]

    def running(self) -> list[Asked]:
        """List those that are in mid-stream: a page shows some text of them, and no end."""
        return [asked for asked in self._all() if self._state(asked) is State.RUNNING and self._has_begun(asked)]

    def harm(self, asked: Asked) -> None:
        """The log's copy of a generation was destroyed, or a part of it."""
        self._harms[asked.gen] = Harm(wiped=True)

    def harm_conversation(self, conversation: str) -> None:
        """A conversation's log was deleted, and with it the entries of all its generations."""
        for asked in self._all():
            if asked.conversation == conversation:
                self.harm(asked)

    def harm_everything(self) -> None:
        for asked in self._all():
            self.harm(asked)

    def harms(self) -> dict[str, Harm]:
        return {
            asked.gen: replace(self._harms.get(asked.gen, Harm()), upstream_way=self.upstream_way)
            for asked in self._all()
        }

    async def redis_command(self, *command: str) -> None:
        """Speak to Redis past every wire. If it is away, that is another fault's doing."""
        try:
            await cast("Any", self.site.client).execute_command(*command)
        except (RedisError, OSError):
            return

    def _all(self) -> list[Asked]:
        return [asked for person in self.people for asked in person.asked]

    def _state(self, asked: Asked) -> State:
        known = [page.generations[asked.gen] for page in self._pages(asked) if asked.gen in page.generations]
        return max(known, key=lambda snapshot: snapshot.seq).state if known else State.QUEUED

    def _has_begun(self, asked: Asked) -> bool:
        known = [page.generations[asked.gen] for page in self._pages(asked) if asked.gen in page.generations]
        return any(snapshot.text or snapshot.reasoning for snapshot in known)

    def _pages(self, asked: Asked) -> list[Page]:
        return self.pages.get(asked.conversation, [])
