"""Stop means stop: whenever, from wherever, and with the upstream's own account as the proof."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from random import Random

import pytest

from streaming.lifecycle import State
from tests.torture import faults
from tests.torture.database import states_of
from tests.torture.measured import calls_for, percentile, until_called, until_closed
from tests.torture.page import Habit
from tests.torture.person import Asked, Person
from tests.torture.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(180)]

# Issue 3 asks for 100 ms on an idle machine. A test machine is shared, so a figure is reported and this is asserted.
MUCH_TOO_LATE_MS = 1_000
# Whoever has lost its ear for cancels asks with its next write or renewal of the lease.
RENEWAL_MS = 4_000


async def stop_ms(stage: Stage, person: Person, asked: Asked) -> float:
    """Click Stop; give how long it took until the upstream's connection was closed, by the upstream's account."""
    clicked = time.monotonic() * 1000
    await person.stop(asked.gen)
    return await until_closed(stage.site, asked) - clicked


def states(stage: Stage) -> set[State]:
    return set(states_of(stage.site.database, stage.gens).values())


async def test_open_webui_16251_stop_closes_the_upstream_while_twenty_answers_run(
    stage: Stage, figure: Callable[[str], None], at_length: bool
) -> None:
    took: list[float] = []
    for _ in range(5 if at_length else 1):
        talks = await stage.talks(20, "count-on")
        took += [await stop_ms(stage, talk.person, talk.asked[0]) for talk in talks]
    figure(f"click to upstream closed, {len(took)} stops: p50 {percentile(took, 50):.0f} ms, "
           f"p99 {percentile(took, 99):.0f} ms, at most {max(took):.0f} ms")  # fmt: skip
    assert await stage.judge() == []
    assert states(stage) == {State.CANCELLED}
    assert percentile(took, 90) < MUCH_TOO_LATE_MS


async def test_llama_cpp_27481_stop_works_before_the_first_token(stage: Stage, figure: Callable[[str], None]) -> None:
    took = []
    for _ in range(5):
        talk = await stage.talk(["never-opens"])
        await until_called(stage.site, talk.asked[0])
        took.append(await stop_ms(stage, talk.person, talk.asked[0]))
    figure(f"p50 {percentile(took, 50):.0f} ms, at most {max(took):.0f} ms")
    assert await stage.judge() == []
    assert states(stage) == {State.CANCELLED}
    assert max(took) < MUCH_TOO_LATE_MS


async def test_lmstudio_1203_stop_right_after_asking_is_not_ignored(stage: Stage) -> None:
    for _ in range(20):
        talk = await stage.talk(["count-on"])
        await talk.person.stop(talk.gen)
    assert await stage.judge() == []
    assert states(stage) == {State.CANCELLED}


async def test_open_webui_28909_stop_works_after_redis_was_restarted(
    stage: Stage, figure: Callable[[str], None]
) -> None:
    talks = await stage.talks(5, "count-on")
    await faults.kill_redis(stage.scene, Random(1))
    grown = [len(talk.text()) + 10 for talk in talks]
    await asyncio.gather(*(talk.page.until(talk.gen, length) for talk, length in zip(talks, grown, strict=True)))
    took = [await stop_ms(stage, talk.person, talk.asked[0]) for talk in talks]
    figure(f"p50 {percentile(took, 50):.0f} ms, at most {max(took):.0f} ms")
    assert await stage.judge() == []
    assert states(stage) == {State.CANCELLED}
    assert max(took) < MUCH_TOO_LATE_MS


async def test_stop_works_after_a_long_silence(stage: Stage, figure: Callable[[str], None], at_length: bool) -> None:
    silent_s = 60 if at_length else 5
    talk = await stage.talk(["count-silent"])
    await talk.page.until(talk.gen, 10)
    await asyncio.sleep(silent_s)
    took = await stop_ms(stage, talk.person, talk.asked[0])
    figure(f"{took:.0f} ms, after {silent_s} s of silence")
    assert await stage.judge() == []
    assert states(stage) == {State.CANCELLED}
    assert took < MUCH_TOO_LATE_MS


async def test_centrifugo_1189_stop_works_for_a_worker_that_has_lost_its_subscription(
    stage: Stage, figure: Callable[[str], None]
) -> None:
    (talk,) = await stage.talks(1, "count-on")
    await faults.kill_subscriptions(stage.scene, Random(1))
    took = await stop_ms(stage, talk.person, talk.asked[0])
    figure(f"{took:.0f} ms")
    assert await stage.judge() == []
    assert took < RENEWAL_MS


async def test_open_webui_26779_stop_reaches_the_driver_from_either_web_server(stage: Stage) -> None:
    for web in stage.site.webs:
        (talk,) = await stage.talks(1, "count-on")
        await web.kill()
        assert await stop_ms(stage, talk.person, talk.asked[0]) < RENEWAL_MS
        await web.start()
        await web.until_ready()
    assert await stage.judge() == []
    assert states(stage) == {State.CANCELLED}


async def test_huggingface_2334_what_waits_in_the_queue_is_stopped_without_calling_the_model(stage: Stage) -> None:
    for worker in stage.site.workers:
        await worker.kill()
    talk = await stage.talk(["count-on"])
    stop = await talk.person.stop(talk.gen)
    await stage.site.heal()
    assert await stage.judge() == []
    assert (stop.status, stop.state) == (200, State.CANCELLED)
    assert await calls_for(stage.site, talk.asked[0]) == []


async def test_a_stop_outlives_the_worker_that_should_have_heard_it(stage: Stage) -> None:
    (talk,) = await stage.talks(1, "count-on")
    for worker in stage.site.workers:
        worker.freeze()
    await talk.person.stop(talk.gen)
    for worker in stage.site.workers:
        await worker.kill()
    await stage.site.heal()
    assert await stage.judge() == []
    assert states(stage) == {State.CANCELLED}


async def test_open_webui_29844_stopping_all_panes_leaves_no_call_open(stage: Stage) -> None:
    talk = await stage.talk(["count-on", "count-long", "never-opens", "count-slow"])
    await talk.page.until(talk.gen, 10)
    await asyncio.gather(*(talk.person.stop(asked.gen) for asked in talk.asked))
    assert await stage.judge() == []
    assert states(stage) == {State.CANCELLED}


async def test_distributed_llama_225_nothing_of_a_stopped_answer_is_in_the_next(stage: Stage) -> None:
    talk = await stage.talk(["count-on"], [Habit("websocket"), Habit("sse")])
    for _ in range(3):
        await talk.page.until(talk.person.asked[-1].gen, 30)
        await talk.person.stop(talk.person.asked[-1].gen)
        await talk.page.until_ended([talk.person.asked[-1].gen])
        await stage.ask_again(talk, ["count-on"])
    await talk.person.stop(talk.person.asked[-1].gen)
    assert await stage.judge() == []


async def test_langgraphjs_2438_closing_every_page_stops_nothing(stage: Stage) -> None:
    talk = await stage.talk(["count-quick"], [Habit("sse", joins_after_s=3.0)])
    stage.site.front.cut()
    assert await stage.judge() == []
    assert states(stage) == {State.COMPLETED}
    assert talk.text()
