"""Readers who miss something, or come at a bad moment, still get the whole. Named as in test_loss.py."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from streaming.lifecycle import State
from tests.torture.database import states_of
from tests.torture.page import Habit, Miss
from tests.torture.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]

EACH_TRANSPORT = (Habit("websocket"), Habit("sse"), Habit("ndjson"))


async def test_resumable_stream_47_a_reader_whose_connection_dies_with_the_end_learns_of_it(stage: Stage) -> None:
    talk = await stage.talk(["count-few"], [replace(habit, misses=Miss.CONNECTION) for habit in EACH_TRANSPORT])
    assert await stage.judge() == []
    assert [page.missed_ends for page in talk.pages] == [1, 1, 1]


async def test_resumable_stream_47_a_reader_who_is_never_told_the_end_asks_for_it(
    stage: Stage, at_length: bool
) -> None:
    if not at_length:
        pytest.skip("it takes two pings, 15 s each; TORTURE_FULL=1 has the time")
    talk = await stage.talk(["count-few"], [replace(habit, misses=Miss.FRAME) for habit in EACH_TRANSPORT])
    assert await stage.judge() == []
    assert [page.missed_ends for page in talk.pages] == [1, 1, 1]


async def test_cloudflare_1784_a_page_that_is_reloaded_while_the_answer_is_queued_shows_it_later(stage: Stage) -> None:
    before = [await stage.talk(["count-in-quick-turn"]) for _ in stage.site.workers]
    await asyncio.gather(*(talk.page.until(talk.gen, 1) for talk in before))
    late = await stage.talk(["count-in-quick-turn"], [replace(habit, joins_after_s=0.3) for habit in EACH_TRANSPORT])
    for page in late.pages:
        await page.until(late.gen, 0)
        assert page.generations[late.gen].state is State.QUEUED
    assert await stage.judge() == []
    assert set(states_of(stage.site.database, stage.gens).values()) == {State.COMPLETED}
