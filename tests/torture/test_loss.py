"""Nothing is lost, doubled or falsely completed. Each test is named after a public failure that it would have shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from random import Random

import pytest

from chatapp.dispatch import QUEUE
from streaming.lifecycle import State
from streaming.log.ports import Ref
from streaming.log.redis_format import append_keys
from tests.torture import faults
from tests.torture.database import states_of
from tests.torture.measured import calls_for
from tests.torture.page import Habit
from tests.torture.stage import Stage, Talk

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(180)]

EACH_TRANSPORT = (Habit("websocket"), Habit("sse"), Habit("ndjson"))
# A lease of 10 s, and the reaper's round; twice that on a machine that has much else to do.
KNOWN_WITHIN_S = 24.0


def states(stage: Stage) -> list[State]:
    return sorted(states_of(stage.site.database, stage.gens).values())


async def test_librechat_1548_a_killed_workers_answers_are_interrupted_not_finished(
    stage: Stage, figure: Callable[[str], None]
) -> None:
    talks = await stage.talks(10, "count-on")
    for talk in talks:
        talk.page.forget_pauses()
    began = time.monotonic()
    await stage.site.workers[0].kill()
    # The other worker's answers go on; these end.
    known = await asyncio.wait_for(_the_first_to_end(talks), KNOWN_WITHIN_S)
    known_s = max(known.values()) - began
    lost = [talk for talk in talks if talk.gen in known]
    pauses = [talk.page.longest_pause_s[talk.gen] for talk in talks if talk not in lost]
    await asyncio.gather(*(talk.person.stop(talk.gen) for talk in talks))
    figure(f"{len(lost)} of 10 known lost after {known_s:.1f} s; others paused at most {max(pauses) * 1000:.0f} ms")
    assert await stage.judge() == []
    assert states(stage) == [State.CANCELLED] * (10 - len(lost)) + [State.INTERRUPTED] * len(lost)
    assert max(pauses) < 1.0


async def _the_first_to_end(talks: list[Talk]) -> dict[str, float]:
    """Wait until pages learn of ends, and of no more for a second; give when each was known, by generation."""
    known: dict[str, float] = {}
    waiting = {asyncio.create_task(_know(talk, known)) for talk in talks}
    done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    while done and pending:
        done, pending = await asyncio.wait(pending, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    return known


async def _know(talk: Talk, known: dict[str, float]) -> None:
    await talk.page.until_ended([talk.gen])
    known[talk.gen] = time.monotonic()


async def test_unsloth_9997_a_frozen_worker_is_taken_over_and_its_zombie_writes_nothing(stage: Stage) -> None:
    await stage.talks(6, "count-on")
    for worker in stage.site.workers:
        worker.freeze()
    await stage.site.workers[0].kill()
    await stage.site.workers[0].start()
    # The new worker ends what the frozen one and the killed one wrote.
    await stage.until_ended(KNOWN_WITHIN_S + 5)
    stage.site.workers[1].thaw()
    assert await stage.judge() == []
    assert states(stage) == [State.INTERRUPTED] * 6


async def test_recoupable_1924_a_proxy_that_ends_responses_cleanly_completes_nothing(stage: Stage) -> None:
    talk = await stage.talk(["count", "count-quick"], EACH_TRANSPORT)
    for length in (20, 60, 100, 140):
        await asyncio.gather(*(page.until(talk.gen, length) for page in talk.pages))
        connections = [page.connections for page in talk.pages]
        for wire in stage.site.web_http:
            wire.close_cleanly()
        async with asyncio.timeout(10):
            while any(page.connections <= before for page, before in zip(talk.pages, connections, strict=True)):
                await asyncio.sleep(0.05)
    assert await stage.judge() == []
    assert states(stage) == [State.COMPLETED] * 2


async def test_nginx_with_its_default_buffering_does_not_hold_answers_back(
    stage: Stage, figure: Callable[[str], None]
) -> None:
    talk = await stage.talk(["count-quick"], EACH_TRANSPORT)
    began = time.monotonic()
    await asyncio.gather(*(page.until(talk.gen, 1) for page in talk.pages))
    first_s = time.monotonic() - began
    figure(f"first text on all three transports after {first_s:.2f} s of an answer of several seconds")
    assert talk.page.generations[talk.gen].state is State.RUNNING
    assert await stage.judge() == []


async def test_celery_4354_a_lost_message_loses_no_answer(stage: Stage) -> None:
    for worker in stage.site.workers:
        await worker.kill()
    await stage.talk(["count-quick"])
    await stage.scene.redis_command("DEL", QUEUE)
    await stage.site.heal()
    assert await stage.judge() == []
    assert states(stage) == [State.COMPLETED]


async def test_celery_5935_a_message_that_comes_five_times_calls_the_model_once(stage: Stage) -> None:
    (talk,) = await stage.talks(1, "count-quick")
    for seed in range(5):
        await faults.repeat_messages(stage.scene, Random(seed))
    assert await stage.judge() == []
    assert len(await calls_for(stage.site, talk.asked[0])) == 1


async def test_centrifugo_1189_readers_whose_connections_are_killed_read_on(stage: Stage) -> None:
    talk = await stage.talk(["count", "count-quick"], EACH_TRANSPORT)
    for _ in range(5):
        await asyncio.gather(*(page.until(asked.gen, 20) for page in talk.pages for asked in talk.asked))
        await faults.kill_subscriptions(stage.scene, Random(1))
        await faults.kill_clients(stage.scene, Random(1))
        await faults.flush_scripts(stage.scene, Random(1))
    assert await stage.judge() == []
    assert states(stage) == [State.COMPLETED] * 2


async def test_redis_py_3138_a_black_hole_before_redis_loses_nothing(
    stage: Stage, figure: Callable[[str], None], at_length: bool
) -> None:
    talk = await stage.talk(["count", "count-quick"], EACH_TRANSPORT)
    await asyncio.gather(*(page.until(asked.gen, 20) for page in talk.pages for asked in talk.asked))
    for wire in stage.site.web_redis:
        wire.silence()
    await asyncio.sleep(20 if at_length else 7)
    for wire in stage.site.web_redis:
        wire.heal()
    healed_at = time.monotonic()
    await stage.until_known()
    figure(f"every page knew of the end {time.monotonic() - healed_at:.1f} s after Redis could be reached again")
    assert await stage.judge() == []
    assert states(stage) == [State.COMPLETED] * 2


async def test_deleted_keys_are_written_again_by_a_living_driver(stage: Stage) -> None:
    (talk,) = await stage.talks(1, "count")
    asked = talk.asked[0]
    assert await stage.scene.destroy(asked, append_keys(Ref(asked.conversation, asked.number, asked.gen)))
    assert await stage.judge() == []
    assert states(stage) == [State.COMPLETED]


async def test_pages_learn_of_an_end_that_comes_before_what_they_show(stage: Stage) -> None:
    """The log loses its tail and the driver dies: the end has a seq that pages have seen already."""
    talks = await stage.talks(4, "count-on", EACH_TRANSPORT)
    await asyncio.gather(*(talk.page.until(talk.gen, 150) for talk in talks))
    for worker in stage.site.workers:
        worker.freeze()
    await faults.chop_log(stage.scene, Random(4))
    for worker in stage.site.workers:
        await worker.kill()
    await stage.site.heal()
    assert await stage.judge() == []
    assert states(stage) == [State.INTERRUPTED] * 4


async def test_librechat_13117_a_kept_connection_shows_the_next_turn(stage: Stage) -> None:
    talk = await stage.talk(["count-quick"], EACH_TRANSPORT)
    await asyncio.gather(*(page.until_ended([talk.gen]) for page in talk.pages))
    # The second turn is served by another worker.
    await stage.site.workers[0].kill()
    await stage.ask_again(talk, ["count-quick"])
    assert await stage.judge() == []


async def test_a_locked_database_delays_the_end_and_falsifies_nothing(stage: Stage) -> None:
    talk = await stage.talk(["count-quick"])
    await talk.page.until(talk.gen, 100)
    await faults.lock_database(stage.scene, Random(3))
    assert await stage.judge() == []
    assert states(stage) == [State.COMPLETED]
