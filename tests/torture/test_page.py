"""The page's twin: it believes what the page believes. Its server is told by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, cast

import pytest

from streaming.lifecycle import State
from streaming.snapshot import Snapshot, snapshot_to_dict
from tests.torture.page import Habit, Page
from tests.torture.person import Person


class Server:
    """What a page asks of a person: the sync document, of these generations."""

    deleting = False

    def __init__(self) -> None:
        self.generations: Sequence[Snapshot] = ()

    async def sync(self) -> dict[str, Any]:
        told = [snapshot_to_dict(one) for one in self.generations]
        return {"cursor": "1-0", "turns": [{"generations": told}]}


class AtOnce(random.Random):
    """Chance that never lets a page wait."""

    def uniform(self, a: float, b: float) -> float:
        return a


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def page(server: Server) -> Page:
    return Page(cast("Person", server), Habit("sse"), "page", AtOnce())


def frame(*events: dict[str, Any]) -> dict[str, Any]:
    return {"type": "events", "cursor": "2-0", "events": list(events)}


def running(gen: str, text: str = "") -> Snapshot:
    return Snapshot(gen, State.RUNNING, attempt=1, seq=1, text=text)


async def test_what_a_sync_leaves_out_is_not_shown_any_more(server: Server, page: Page) -> None:
    server.generations = (running("a"), running("b"))
    await page._sync()
    server.generations = (running("a"),)
    await page._sync()
    assert (page.seen("a").snapshot, page.seen("b").snapshot) == (running("a"), None)


async def test_a_sync_may_take_text_away_and_it_is_remembered(server: Server, page: Page) -> None:
    for text in ("more text", "more"):
        server.generations = (running("a", text),)
        await page._sync()
    seen = page.seen("a")
    assert (seen.longest, seen.snapshot) == ("more text", running("a", "more"))


async def test_a_snapshot_of_an_unknown_generation_is_a_gap_and_not_shown(page: Page) -> None:
    unknown = {"type": "snapshot", "cursor": "2-0", "generations": [snapshot_to_dict(running("a"))]}
    assert not await page._take(unknown)
    assert page.seen("a").snapshot is None


async def test_a_block_beyond_a_missing_one_is_complained_about(server: Server, page: Page) -> None:
    server.generations = (running("a", "text"),)
    await page._sync()
    block = {"v": 1, "type": "block", "gen": "a", "after_seq": 1, "html": "<p>b</p>", "sealed": True, "length": 4}
    assert await page._take(frame({**block, "index": 1}))
    assert ["no block 0" in complaint for complaint in page.complaints] == [True]


async def test_a_ping_while_an_answer_has_been_silent_for_long_makes_the_page_ask(server: Server, page: Page) -> None:
    server.generations = (running("a"),)
    await page._sync()
    assert await page._take({"type": "ping"})
    page._told_at -= 60.0
    assert not await page._take({"type": "ping"})
