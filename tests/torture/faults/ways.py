"""Ways between parts of the site that are cut, silent, slow or closed."""

from __future__ import annotations

import asyncio
from random import Random

from streaming.log.ports import LEASE_MS
from tests.torture.faults.caught import Caught, Reach, driven_by
from tests.torture.scene import Scene
from tests.torture.scripts import ALL
from tests.torture.wire import Wire

_LEASE_S = LEASE_MS / 1000


async def cut_upstream(scene: Scene, rng: Random) -> Caught:
    """Every connection between one worker and the upstream is reset."""
    number = rng.randrange(len(scene.site.worker_upstream))
    caught = await _on_disturbed_way(scene, number)()
    scene.site.worker_upstream[number].cut()
    return caught


async def silence_upstream(scene: Scene, rng: Random) -> Caught:
    """Nothing passes for a while: sometimes longer than the model's deadline."""
    number = rng.randrange(len(scene.site.worker_upstream))
    wire, for_s = scene.site.worker_upstream[number], rng.choice((1.0, 4.0, 10.0))
    return await _silence(wire, for_s, _on_disturbed_way(scene, number))


async def delay_upstream(scene: Scene, rng: Random) -> Caught:
    number = rng.randrange(len(scene.site.worker_upstream))
    wire, by_s, for_s = scene.site.worker_upstream[number], rng.uniform(0.05, 0.5), rng.uniform(2, 5)
    return await _delay(wire, by_s, for_s, _on_disturbed_way(scene, number))


async def refuse_upstream(scene: Scene, rng: Random) -> Caught:
    """New calls find nobody listening, for a while. It catches those that wait for their turn."""
    wire = rng.choice(scene.site.worker_upstream)
    caught = scene.queued()
    with wire.refusing():
        await asyncio.sleep(rng.uniform(0.5, 3))
    return caught


async def cut_worker_from_redis(scene: Scene, rng: Random) -> Caught:
    number = rng.randrange(len(scene.site.worker_redis))
    caught = await scene.speaking(number)
    scene.site.worker_redis[number].cut()
    return caught


async def silence_worker_from_redis(scene: Scene, rng: Random) -> Caught:
    """A black hole: sometimes for longer than the lease, so that the other worker takes over."""
    number = rng.randrange(len(scene.site.worker_redis))
    for_s = rng.choice((1.0, 4.0, 7.0, _LEASE_S + 3))
    return await _silence(scene.site.worker_redis[number], for_s, driven_by(scene, number))


async def delay_worker_from_redis(scene: Scene, rng: Random) -> Caught:
    number = rng.randrange(len(scene.site.worker_redis))
    by_s, for_s = rng.uniform(0.02, 0.2), rng.uniform(2, 5)
    return await _delay(scene.site.worker_redis[number], by_s, for_s, driven_by(scene, number))


async def cut_web_from_redis(scene: Scene, rng: Random) -> Caught:
    caught = await scene.watched()
    rng.choice(scene.site.web_redis).cut()
    return caught


async def silence_web_from_redis(scene: Scene, rng: Random) -> Caught:
    return await _silence(rng.choice(scene.site.web_redis), rng.choice((1.0, 4.0, 8.0)), scene.watched)


async def cut_pages(scene: Scene, rng: Random) -> Caught:
    caught = await scene.watched()
    scene.site.front.cut()
    return caught


async def silence_pages(scene: Scene, rng: Random) -> Caught:
    return await _silence(scene.site.front, rng.uniform(0.5, 3), scene.watched)


async def delay_pages(scene: Scene, rng: Random) -> Caught:
    return await _delay(scene.site.front, rng.uniform(0.05, 0.5), rng.uniform(2, 4), scene.watched)


async def close_cleanly(scene: Scene, rng: Random) -> Caught:
    """What stands between web server and pages has had enough, and ends every response in an orderly way."""
    caught = await scene.watched()
    rng.choice(scene.site.web_http).close_cleanly()
    return caught


def _on_disturbed_way(scene: Scene, worker: int) -> Reach:
    """Those that fail by themselves take another way, which no fault touches."""

    async def reach() -> Caught:
        return [asked for asked in await scene.speaking(worker) if not ALL[asked.model].error]

    return reach


async def _silence(wire: Wire, for_s: float, reach: Reach) -> Caught:
    caught = await reach()
    with wire.silenced():
        await asyncio.sleep(for_s)
    return caught


async def _delay(wire: Wire, by_s: float, for_s: float, reach: Reach) -> Caught:
    caught = await reach()
    with wire.delayed(by_s):
        await asyncio.sleep(for_s)
    return caught
