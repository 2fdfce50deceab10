"""What is lost, repeated or locked in Redis and the database."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from pathlib import Path
from random import Random
from typing import Any, cast

from celery import Celery
from kombu.exceptions import OperationalError

from chatapp.dispatch import QUEUE, TASK
from chatapp.redisurl import broker_url
from streaming.log.ports import Ref
from streaming.log.redis_format import append_keys
from tests.torture.evidence import Lost
from tests.torture.faults.caught import Caught
from tests.torture.hurts import How, Place, now_ms
from tests.torture.scene import Scene

# A generation's own keys, among those that an append names.
_OWN = slice(1, None)
# A fault that is for those who wait strikes when somebody does.
_WAITS_MS, _LOOK_S = 3_000.0, 0.05
_KEY = re.compile(rb"ss:\{([0-9a-f-]+)\}:(\d+):")


async def chop_log(scene: Scene, rng: Random) -> Caught:
    """Redis is killed and its last writes are gone, as after a power failure between two fsyncs."""
    redis = scene.site.redis
    async with redis.lock:
        caught = await scene.speaking()
        await redis.kill()
        file = max((scene.site.folder / "redis").rglob("*.incr.aof"), key=lambda path: path.stat().st_mtime)
        written_of = _chop(file, rng.randrange(1, 30_000))
        lost = [asked for asked in scene.asked() if (asked.conversation, asked.number) in written_of]
        scene.lose(Lost.TAIL, lost)
        await redis.start()
        await redis.until_ready()
    return [asked for asked in caught if asked in lost]


async def kill_subscriptions(scene: Scene, rng: Random) -> Caught:
    """The workers' ears for cancel requests are cut off, and nothing else."""
    caught = await scene.speaking()
    await scene.redis_command("CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes")
    return caught


async def kill_clients(scene: Scene, rng: Random) -> Caught:
    caught = await scene.speaking()
    hurt = scene.site.hurts.begin(Place.REDIS, How.DISTURBED)
    await scene.redis_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    hurt.heal()
    return caught


async def flush_scripts(scene: Scene, rng: Random) -> Caught:
    caught = await scene.speaking()
    await scene.redis_command("SCRIPT", "FLUSH")
    return caught


async def wipe_generation(scene: Scene, rng: Random) -> Caught:
    """All keys of one running generation are deleted; sometimes its conversation's log as well."""
    which = slice(0, None) if rng.random() < 0.5 else _OWN
    return await _destroy(scene, rng, await scene.speaking(), which)


async def wipe_queued(scene: Scene, rng: Random) -> Caught:
    """All keys of one generation that waits are deleted: who drives it, and that it was to stop."""
    give_up_at = now_ms() + _WAITS_MS
    while not (waiting := scene.queued()) and now_ms() < give_up_at:
        await asyncio.sleep(_LOOK_S)
    return await _destroy(scene, rng, waiting, _OWN)


async def evict_key(scene: Scene, rng: Random) -> Caught:
    """One key of a running generation is gone, as when Redis runs out of memory: its log, or a part of its state."""
    place = rng.randrange(6)
    return await _destroy(scene, rng, await scene.speaking(), slice(place, place + 1))


async def lock_database(scene: Scene, rng: Random) -> Caught:
    """Somebody else writes to the database for a while."""
    connection = sqlite3.connect(scene.site.database, timeout=20, isolation_level=None, check_same_thread=False)
    hurt = scene.site.hurts.begin(Place.DATABASE, How.DISTURBED)
    try:
        await asyncio.to_thread(connection.execute, "BEGIN IMMEDIATE")
        caught = await scene.speaking()
        await asyncio.sleep(rng.uniform(0.5, 6))
        await asyncio.to_thread(connection.execute, "ROLLBACK")
    finally:
        connection.close()
        hurt.heal()
    return caught


async def repeat_messages(scene: Scene, rng: Random) -> Caught:
    """Every live generation's task message comes again, some twice."""
    live = scene.live()
    gens = [asked.gen for asked in live for _ in range(rng.choice((1, 2)))]
    sent = await asyncio.to_thread(_send, scene.site.private_redis.url, gens)
    return live if sent else ()


async def lose_messages(scene: Scene, rng: Random) -> Caught:
    """
    Messages on their way to the workers are lost with the connections that carry them, and the queue is emptied.

    It catches those that nobody had begun when the queue was emptied.
    """
    wires = scene.site.worker_redis
    for wire in wires:
        wire.silence()
    await asyncio.sleep(rng.uniform(0.5, 2))
    for wire in wires:
        wire.cut()
    await scene.redis_command("DEL", QUEUE)
    caught = scene.queued()
    for wire in wires:
        wire.heal()
    return caught


async def _destroy(scene: Scene, rng: Random, among: Caught, which: slice) -> Caught:
    """Delete some keys of one generation. Its log is the first, its meta the second."""
    if not among:
        return ()
    # In an order that a seed repeats.
    victim = rng.choice(sorted(among, key=lambda asked: (asked.prompt, asked.number)))
    keys = append_keys(Ref(victim.conversation, victim.number, victim.gen))
    return [victim] if await scene.destroy(victim, keys[which]) else ()


def _chop(file: Path, size: int) -> set[tuple[str, int]]:
    """Cut off the end of an append-only file; give the conversations and numbers of which it had something to say."""
    content = file.read_bytes()
    at = max(0, len(content) - size)
    # Of a transaction that is cut off in its middle Redis keeps nothing.
    begin = max(content.rfind(b"MULTI", 0, at), 0)
    with file.open("r+b") as opened:
        opened.truncate(at)
    return {(conversation.decode(), int(number)) for conversation, number in _KEY.findall(content[begin:])}


def _send(redis_url: str, gens: list[str]) -> bool:
    """Say whether all were sent. If Redis is away, that is another fault's doing."""
    app = Celery(broker=broker_url(redis_url), broker_transport_options={"socket_timeout": 3, "max_retries": 0})
    try:
        with cast("Any", app.connection_for_write()) as connection:
            for gen in gens:
                app.send_task(TASK, [gen], queue=QUEUE, connection=connection, retry=False, ignore_result=True)
    except (OSError, OperationalError):
        return False
    finally:
        app.close()
    return bool(gens)
