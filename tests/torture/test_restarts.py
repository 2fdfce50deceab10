"""Everything is restarted, cut off or silent for a while, and goes on by itself. Named as in test_loss.py."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from random import Random

import pytest

from streaming.lifecycle import TERMINAL, State
from streaming.takeover import LOOK_AGAIN_S
from tests.torture import faults
from tests.torture.database import rows_of, states_of
from tests.torture.part import Part
from tests.torture.stage import Stage, Talk
from tests.torture.wire import Wire
from tests.torture.witnesses import refs_of

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(180)]

LATENCY_S = 0.025
KILLS = 3
# A prompt that waits for a new worker: a message that went down with the old one is sent again after 5 s.
PAUSE_S = 20.0
LOOK_S = 0.1


@contextlib.contextmanager
def delayed(wires: Sequence[Wire]) -> Iterator[None]:
    with contextlib.ExitStack() as all_of_them:
        for wire in wires:
            all_of_them.enter_context(wire.delayed(LATENCY_S))
        yield


async def test_celery_8030_each_worker_takes_tasks_after_its_ways_to_redis_were_cut(
    stage: Stage, figure: Callable[[str], None]
) -> None:
    for _ in range(3):
        for wire in stage.site.worker_redis:
            await until_connected(wire)
            wire.cut()
    figure(f"each worker had driven an answer {await stage.until_each_worker_drives():.1f} s after the last cut")
    assert await stage.judge() == []


async def until_connected(wire: Wire) -> None:
    while not wire.connections:
        await asyncio.sleep(LOOK_S)


async def test_celery_10205_each_worker_takes_tasks_after_redis_was_restarted(
    stage: Stage, figure: Callable[[str], None]
) -> None:
    await faults.kill_redis(stage.scene, Random(1))
    figure(f"each worker had driven an answer {await stage.until_each_worker_drives():.1f} s after Redis was back")
    assert await stage.judge() == []


async def test_kombu_1836_twenty_answers_survive_killed_redises_behind_slow_ways(
    stage: Stage, figure: Callable[[str], None]
) -> None:
    with delayed([*stage.site.worker_redis, *stage.site.web_redis]):
        talks = await stage.talks(20, "count")
        for kill in range(KILLS):
            await faults.kill_redis(stage.scene, Random(kill))
            grown = [len(talk.text()) + 10 for talk in talks]
            await asyncio.gather(*(until_grown(talk, length) for talk, length in zip(talks, grown, strict=True)))
        await stage.until_ended()
    assert await stage.judge() == []
    pause = max(talk.page.longest_pause_s[talk.gen] for talk in talks)
    figure(f"Redis was killed {KILLS} times under 20 answers; the longest pause of one was {pause:.1f} s")
    assert set(states_of(stage.site.database, stage.gens).values()) == {State.COMPLETED}


async def until_grown(talk: Talk, length: int) -> None:
    """Wait until the page shows more, or the end."""
    grown = asyncio.create_task(talk.page.until(talk.gen, length))
    ended = asyncio.create_task(talk.page.until_ended([talk.gen]))
    _, late = await asyncio.wait((grown, ended), return_when=asyncio.FIRST_COMPLETED)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)


async def test_celery_4354_a_rolling_restart_under_steady_prompts_is_no_more_than_a_pause(
    stage: Stage, figure: Callable[[str], None]
) -> None:
    is_over = asyncio.Event()
    prompts = asyncio.create_task(ask_steadily(stage, is_over))
    await asyncio.gather(roll(stage.site.workers), roll(stage.site.webs))
    is_over.set()
    await prompts
    assert await stage.judge() == []
    took = [took_s(stage, gen) for gen in stage.gens]
    figure(f"{len(took)} prompts; the slowest was answered after {max(took):.1f} s")
    assert set(states_of(stage.site.database, stage.gens).values()) == {State.COMPLETED}
    assert max(took) < PAUSE_S


async def roll(parts: Sequence[Part]) -> None:
    """Replace one after the other."""
    for part in parts:
        await part.end()
        await part.start()
        await part.until_ready()


async def ask_steadily(stage: Stage, is_over: asyncio.Event) -> None:
    """Let somebody new ask a short question, again and again."""
    async with asyncio.TaskGroup() as people:
        while not is_over.is_set():
            people.create_task(stage.talk(["count-few"]))
            await asyncio.sleep(0.1)


def took_s(stage: Stage, gen: str) -> float:
    """Give how long a person waited, from the request on, until the answer was there."""
    asked = next(one for one in stage.scene.asked() if one.gen == gen)
    page = stage.scene.pages[asked.conversation][0]
    return page.ended_at[gen] - asked.at_mono / 1000


async def test_llama_cpp_25158_a_silence_longer_than_a_lease_loses_nothing(stage: Stage) -> None:
    await stage.talk(["count-after-silence"])
    assert await stage.judge() == []
    (row,) = rows_of(stage.site.database, stage.gens).values()
    (evidence,) = await stage.evidence()
    assert (row.state, row.attempt, len(evidence.calls)) == (State.COMPLETED, 1, 1)


async def test_bayes_724_with_every_worker_dead_whoever_reads_ends_the_answer(
    stage: Stage, figure: Callable[[str], None]
) -> None:
    talk = await stage.talk(["count-on"])
    await talk.page.until(talk.gen, 60)
    for worker in stage.site.workers:
        await worker.kill()
    while any(lease and lease.runs for lease in await stage.log.leases(refs_of(talk.person))):
        await asyncio.sleep(LOOK_S)
    began = time.monotonic()
    await talk.person.sync()
    while not TERMINAL.issuperset(states_of(stage.site.database, stage.gens).values()):
        await asyncio.sleep(LOOK_S)
    known_s = time.monotonic() - began
    (row,) = rows_of(stage.site.database, stage.gens).values()
    figure(f"interrupted {known_s:.1f} s after it was read without a lease, {len(row.text)} characters kept")
    assert await stage.judge() == []
    assert (row.state, (row.error or {}).get("code")) == (State.INTERRUPTED, "driver_lost")
    assert known_s < LOOK_AGAIN_S + 3.0
