"""
What is done to a site. Each fault strikes, lasts for a while, and is taken back before it returns.

A fault takes its victims and its length from the random source it is given, so that a seed repeats it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, TypeAlias, cast

from celery import Celery
from kombu.exceptions import OperationalError

from chatapp.dispatch import QUEUE, TASK
from chatapp.redisurl import broker_url
from streaming.log.ports import LEASE_MS, Ref
from streaming.log.redis import append_keys, log_key
from tests.torture.part import Part
from tests.torture.scene import Scene
from tests.torture.wire import Wire

Fault: TypeAlias = Callable[[Scene, Random], Awaitable[None]]

_LEASE_S = LEASE_MS / 1000


async def kill_worker(scene: Scene, rng: Random) -> None:
    """kill -9, and a new one some time later."""
    await _replace(rng.choice(scene.site.workers), rng.uniform(0, 3))


async def kill_both_workers(scene: Scene, rng: Random) -> None:
    down_s = rng.uniform(0, 2)
    await asyncio.gather(*(_replace(worker, down_s) for worker in scene.site.workers))


async def kill_web(scene: Scene, rng: Random) -> None:
    await _replace(rng.choice(scene.site.webs), rng.uniform(0, 2))


async def kill_redis(scene: Scene, rng: Random) -> None:
    """The append-only file survives, as the kernel has it."""
    await _replace(scene.site.redis, rng.uniform(0, 3))


async def chop_log(scene: Scene, rng: Random) -> None:
    """Redis is killed and its last writes are gone, as after a power failure between two fsyncs."""
    redis = scene.site.redis
    async with redis.lock:
        await redis.kill()
        newest = max((scene.site.folder / "redis").rglob("*.incr.aof"), key=lambda path: path.stat().st_mtime)
        size = newest.stat().st_size
        with newest.open("r+b") as file:
            file.truncate(max(0, size - rng.randrange(1, 30_000)))
        scene.harm_everything()
        await redis.start()
        await redis.until_ready()


async def freeze_worker(scene: Scene, rng: Random) -> None:
    """SIGSTOP for a moment: shorter than a lease."""
    await _freeze(rng.choice(scene.site.workers), rng.uniform(0.5, 5))


async def make_zombie(scene: Scene, rng: Random) -> None:
    """SIGSTOP for longer than a lease: its generations are taken over, then it wakes."""
    await _freeze(rng.choice(scene.site.workers), _LEASE_S + rng.uniform(3, 5))


async def freeze_web(scene: Scene, rng: Random) -> None:
    await _freeze(rng.choice(scene.site.webs), rng.uniform(0.5, 4))


async def freeze_redis(scene: Scene, rng: Random) -> None:
    await _freeze(scene.site.redis, rng.uniform(0.5, 7))


async def drain_worker(scene: Scene, rng: Random) -> None:
    """A rolling restart: SIGTERM, its end, a new one."""
    part = rng.choice(scene.site.workers)
    async with part.lock:
        await part.end()
        await part.start()
        await part.until_ready()


async def drain_web(scene: Scene, rng: Random) -> None:
    part = rng.choice(scene.site.webs)
    async with part.lock:
        await part.end()
        await part.start()
        await part.until_ready()


async def cut_upstream(scene: Scene, rng: Random) -> None:
    """Every connection between one worker and the upstream is reset."""
    _harm_upstream_way(scene)
    rng.choice(scene.site.worker_upstream).cut()


async def silence_upstream(scene: Scene, rng: Random) -> None:
    """Nothing passes for a while: sometimes longer than the model's deadline."""
    _harm_upstream_way(scene)
    await _silence(rng.choice(scene.site.worker_upstream), rng.choice((1.0, 4.0, 10.0)))


async def delay_upstream(scene: Scene, rng: Random) -> None:
    _harm_upstream_way(scene)
    await _delay(rng.choice(scene.site.worker_upstream), rng.uniform(0.05, 0.5), rng.uniform(2, 5))


async def refuse_upstream(scene: Scene, rng: Random) -> None:
    """New calls find nobody listening, for a while."""
    _harm_upstream_way(scene)
    wire = rng.choice(scene.site.worker_upstream)
    wire.refusing = True
    await asyncio.sleep(rng.uniform(0.5, 3))
    wire.refusing = False


async def cut_worker_from_redis(scene: Scene, rng: Random) -> None:
    rng.choice(scene.site.worker_redis).cut()


async def silence_worker_from_redis(scene: Scene, rng: Random) -> None:
    """A black hole: sometimes for longer than the lease, so that the other worker takes over."""
    await _silence(rng.choice(scene.site.worker_redis), rng.choice((1.0, 4.0, 7.0, _LEASE_S + 3)))


async def delay_worker_from_redis(scene: Scene, rng: Random) -> None:
    await _delay(rng.choice(scene.site.worker_redis), rng.uniform(0.02, 0.2), rng.uniform(2, 5))


async def cut_web_from_redis(scene: Scene, rng: Random) -> None:
    rng.choice(scene.site.web_redis).cut()


async def silence_web_from_redis(scene: Scene, rng: Random) -> None:
    await _silence(rng.choice(scene.site.web_redis), rng.choice((1.0, 4.0, 8.0)))


async def cut_pages(scene: Scene, rng: Random) -> None:
    scene.site.front.cut()


async def silence_pages(scene: Scene, rng: Random) -> None:
    await _silence(scene.site.front, rng.uniform(0.5, 3))


async def delay_pages(scene: Scene, rng: Random) -> None:
    await _delay(scene.site.front, rng.uniform(0.05, 0.5), rng.uniform(2, 4))


async def close_cleanly(scene: Scene, rng: Random) -> None:
    """What stands between web server and pages has had enough, and ends every response in an orderly way."""
    rng.choice(scene.site.web_http).close_cleanly()


async def kill_subscriptions(scene: Scene, rng: Random) -> None:
    """The workers' ears for cancel requests are cut off, and nothing else."""
    await scene.redis_command("CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes")


async def kill_clients(scene: Scene, rng: Random) -> None:
    await scene.redis_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


async def flush_scripts(scene: Scene, rng: Random) -> None:
    await scene.redis_command("SCRIPT", "FLUSH")


async def wipe_generation(scene: Scene, rng: Random) -> None:
    """All keys of one running generation are deleted; sometimes its conversation's log as well."""
    running = scene.running()
    if not running:
        return
    victim = rng.choice(running)
    log, *own = append_keys(Ref(victim.conversation, victim.number, victim.gen))
    with_log = rng.random() < 0.5
    scene.harm(victim)
    if with_log:
        scene.harm_conversation(victim.conversation)
    await scene.redis_command("DEL", *own, *([log] if with_log else []))


async def evict_key(scene: Scene, rng: Random) -> None:
    """One key of a running generation is gone, as when Redis runs out of memory: its log, or a part of its state."""
    running = scene.running()
    if not running:
        return
    victim = rng.choice(running)
    keys = append_keys(Ref(victim.conversation, victim.number, victim.gen))
    place = rng.randrange(len(keys))
    scene.harm(victim)
    if keys[place] == log_key(victim.conversation):
        scene.harm_conversation(victim.conversation)
    await scene.redis_command("DEL", keys[place])


async def lock_database(scene: Scene, rng: Random) -> None:
    """Somebody else writes to the database for a while."""
    connection = sqlite3.connect(scene.site.database, timeout=20, isolation_level=None, check_same_thread=False)
    try:
        await asyncio.to_thread(connection.execute, "BEGIN IMMEDIATE")
        await asyncio.sleep(rng.uniform(0.5, 6))
        await asyncio.to_thread(connection.execute, "ROLLBACK")
    finally:
        connection.close()


async def repeat_messages(scene: Scene, rng: Random) -> None:
    """Every live generation's task message comes again, some twice."""
    gens = [asked.gen for asked in scene.live() for _ in range(rng.choice((1, 2)))]
    await asyncio.to_thread(_send, scene.site.private_redis.url, gens)


async def lose_messages(scene: Scene, rng: Random) -> None:
    """Messages on their way to the workers are lost with the connections that carry them, and the queue is emptied."""
    for wire in scene.site.worker_redis:
        wire.silence()
    await asyncio.sleep(rng.uniform(0.5, 2))
    for wire in scene.site.worker_redis:
        wire.cut()
    await scene.redis_command("DEL", QUEUE)
    for wire in scene.site.worker_redis:
        wire.flow()


# How often each is drawn. The long ones are rare, since nothing else of a schedule outlasts them.
WEIGHTS: dict[Fault, int] = {
    kill_worker: 6, kill_both_workers: 2, kill_web: 4, kill_redis: 5, chop_log: 2,
    freeze_worker: 4, make_zombie: 3, freeze_web: 3, freeze_redis: 3, drain_worker: 4, drain_web: 2,
    cut_upstream: 4, silence_upstream: 3, delay_upstream: 2, refuse_upstream: 2,
    cut_worker_from_redis: 4, silence_worker_from_redis: 3, delay_worker_from_redis: 3,
    cut_web_from_redis: 3, silence_web_from_redis: 3,
    cut_pages: 3, silence_pages: 3, delay_pages: 2, close_cleanly: 4,
    kill_subscriptions: 3, kill_clients: 3, flush_scripts: 3, wipe_generation: 3, evict_key: 4,
    lock_database: 3, repeat_messages: 4, lose_messages: 3,
}  # fmt: skip
BY_NAME = {fault.__name__: fault for fault in WEIGHTS}


def draw(rng: Random) -> str:
    """Choose a fault's name by weight."""
    (fault,) = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
    return fault.__name__


async def _replace(part: Part, down_s: float) -> None:
    async with part.lock:
        await part.kill()
        await asyncio.sleep(down_s)
        await part.start()
        await part.until_ready()


async def _freeze(part: Part, for_s: float) -> None:
    async with part.lock:
        if not part.runs:
            return
        part.freeze()
        try:
            await asyncio.sleep(for_s)
        finally:
            part.thaw()


async def _silence(wire: Wire, for_s: float) -> None:
    wire.silence()
    try:
        await asyncio.sleep(for_s)
    finally:
        wire.flow()


async def _delay(wire: Wire, by_s: float, for_s: float) -> None:
    wire.delay_s = by_s
    try:
        await asyncio.sleep(for_s)
    finally:
        wire.delay_s = 0.0


def _harm_upstream_way(scene: Scene) -> None:
    scene.upstream_way = True


def _send(redis_url: str, gens: list[str]) -> None:
    app = Celery(broker=broker_url(redis_url), broker_transport_options={"socket_timeout": 3, "max_retries": 0})
    try:
        with cast("Any", app.connection_for_write()) as connection:
            for gen in gens:
                app.send_task(TASK, [gen], queue=QUEUE, connection=connection, retry=False, ignore_result=True)
    except (OSError, OperationalError):
        return  # Redis is away: another fault's doing.
    finally:
        app.close()
