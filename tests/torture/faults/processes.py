"""Processes that die, stand still, or are replaced."""

from __future__ import annotations

import asyncio
from random import Random

from streaming.log.ports import LEASE_MS
from tests.torture.faults.caught import Caught, Reach, driven_by
from tests.torture.part import Part
from tests.torture.scene import Scene

_LEASE_S = LEASE_MS / 1000


async def kill_worker(scene: Scene, rng: Random) -> Caught:
    """kill -9, and a new one some time later."""
    number = rng.randrange(len(scene.site.workers))
    return await _replace(scene.site.workers[number], rng.uniform(0, 3), driven_by(scene, number))


async def kill_both_workers(scene: Scene, rng: Random) -> Caught:
    down_s = rng.uniform(0, 2)
    parts = enumerate(scene.site.workers)
    killed = await asyncio.gather(*(_replace(part, down_s, driven_by(scene, number)) for number, part in parts))
    return [asked for caught in killed for asked in caught]


async def kill_web(scene: Scene, rng: Random) -> Caught:
    return await _replace(rng.choice(scene.site.webs), rng.uniform(0, 2), scene.watched)


async def kill_redis(scene: Scene, rng: Random) -> Caught:
    """The append-only file survives, as the kernel has it."""
    return await _replace(scene.site.redis, rng.uniform(0, 3), scene.speaking)


async def freeze_worker(scene: Scene, rng: Random) -> Caught:
    """SIGSTOP for a moment: shorter than a lease."""
    number = rng.randrange(len(scene.site.workers))
    return await _freeze(scene.site.workers[number], rng.uniform(0.5, 5), driven_by(scene, number))


async def make_zombie(scene: Scene, rng: Random) -> Caught:
    """SIGSTOP for longer than a lease: its generations are taken over, then it wakes."""
    number = rng.randrange(len(scene.site.workers))
    return await _freeze(scene.site.workers[number], _LEASE_S + rng.uniform(3, 5), driven_by(scene, number))


async def freeze_web(scene: Scene, rng: Random) -> Caught:
    return await _freeze(rng.choice(scene.site.webs), rng.uniform(0.5, 4), scene.watched)


async def freeze_redis(scene: Scene, rng: Random) -> Caught:
    return await _freeze(scene.site.redis, rng.uniform(0.5, 7), scene.speaking)


async def drain_worker(scene: Scene, rng: Random) -> Caught:
    """A rolling restart: SIGTERM, its end, a new one."""
    number = rng.randrange(len(scene.site.workers))
    return await _drain(scene.site.workers[number], driven_by(scene, number))


async def drain_web(scene: Scene, rng: Random) -> Caught:
    return await _drain(rng.choice(scene.site.webs), scene.watched)


async def _replace(part: Part, down_s: float, reach: Reach) -> Caught:
    async with part.lock:
        caught = await reach()
        await part.kill()
        await asyncio.sleep(down_s)
        await part.start()
        await part.until_ready()
    return caught


async def _drain(part: Part, reach: Reach) -> Caught:
    async with part.lock:
        caught = await reach()
        await part.end()
        await part.start()
        await part.until_ready()
    return caught


async def _freeze(part: Part, for_s: float, reach: Reach) -> Caught:
    async with part.lock:
        if not part.runs:
            return ()
        caught = await reach()
        part.freeze()
        try:
            await asyncio.sleep(for_s)
        finally:
            part.thaw()
    return caught
