"""The one place that builds streaming objects from settings."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Self

from django.conf import settings
from redis.asyncio import Redis

from chatapp import presence
from chatapp.admission import line
from chatapp.database import in_database
from chatapp.discovery import Discovery
from chatapp.dispatch import dispatcher
from chatapp.ending import end
from chatapp.lookout import Lookout
from chatapp.offer import Offer, OfferFile
from chatapp.readiness import Trial
from chatapp.resting import RestBoard, resting
from chatapp.slots import Slots
from chatapp.store import DjangoStore
from chatapp.streams import Streams
from chatapp.upstreams import Upstreams
from streaming.cancel import request_cancel
from streaming.lifecycle import State
from streaming.log.ports import Log, Ref
from streaming.log.redis import RedisLog
from streaming.runtime import Runtime
from streaming.tailer import Tailer
from streaming.takeover import end_lost

logger = logging.getLogger(__name__)

TAIL_AGAIN_S = 1.0


def clock() -> int:
    """Give the time in the protocol's unit, epoch ms."""
    return time.time_ns() // 1_000_000


@cache
def _offer_file(path: str) -> OfferFile:
    return OfferFile(path, os.environ, Discovery(os.environ))


def offer() -> Offer:
    """Give the models on offer, as the operator's file says now."""
    return _offer_file(str(settings.MODELS_FILE)).current()


@dataclass(frozen=True, slots=True)
class Web:
    """What a web process needs of the core, on one event loop."""

    log: Log
    store: DjangoStore
    tailer: Tailer
    redis: Redis
    streams: Streams
    lookout: Lookout
    trial: Trial
    _serving: tuple[asyncio.Task[None], ...]

    @classmethod
    def build(cls) -> Self:
        log = RedisLog.connect(settings.REDIS_URL)
        tailer = Tailer(log)
        redis = presence.connect(settings.REDIS_URL)
        streams = Streams(redis)
        tailing = asyncio.create_task(_tail(tailer), name="tailer")
        counting = asyncio.create_task(streams.run(), name="streams")
        store = DjangoStore(offer)
        trial = Trial(redis, tells=not settings.WATCHED)
        lookout = Lookout(lambda refs: end_lost(log, store, refs, clock))
        return cls(log, store, tailer, redis, streams, lookout, trial, (tailing, counting))

    async def cancel(self, ref: Ref, by: str) -> State:
        """Ask a generation to stop; give its state afterwards."""
        return await request_cancel(self.log, self.store, ref, by, clock)

    async def models(self) -> list[dict[str, Any]]:
        """List the models on offer for people, with the services that rest just now."""
        return offer().public(await resting(self.redis), time.time())

    async def close(self) -> None:
        await end(*self._serving)
        await self.lookout.close()
        await self.streams.forget()
        self.trial.close()
        await self.log.close()
        await self.redis.aclose()


@dataclass(frozen=True, slots=True)
class Worker:
    """What a worker process needs, on one event loop."""

    log: Log
    runtime: Runtime
    slots: Slots
    redis: Redis

    @classmethod
    def build(cls) -> Self:
        log = RedisLog.connect(settings.REDIS_URL)
        redis = presence.connect(settings.REDIS_URL)
        upstreams = Upstreams(offer, os.environ, RestBoard(redis).post)

        def give(gen: str) -> None:
            # A message that was lost, or a broker that nobody hears: a free slot needs neither.
            if not slots.offer(gen):
                dispatcher.send(gen)

        runtime = Runtime(log, DjangoStore(offer), upstreams.prepare, give, clock, upstreams.queue)
        slots = Slots(runtime.drive, partial(in_database, line), settings.WORKER_STREAMS)
        return cls(log, runtime, slots, redis)

    async def drain(self, grace_s: float) -> None:
        """Come to an end with what runs; see `Runtime.drain`."""
        self.slots.close()
        await self.runtime.drain(grace_s)

    async def close(self) -> None:
        await self.log.close()
        await self.redis.aclose()


# Connections and tasks belong to the loop they were made on. A server has one loop.
_webs: dict[asyncio.AbstractEventLoop, Web] = {}


def web() -> Web:
    """Give the running loop's Web; the first call builds it."""
    loop = asyncio.get_running_loop()
    if loop not in _webs:
        _webs[loop] = Web.build()
    return _webs[loop]


async def close_web() -> None:
    """Close the running loop's Web, if there is one."""
    built = _webs.pop(asyncio.get_running_loop(), None)
    if built is not None:
        await built.close()


async def _tail(tailer: Tailer) -> None:
    """Run the tailer, and again after a fault: every open page hangs on it."""
    while True:
        try:
            await tailer.run()
        except Exception:
            logger.exception("the tailer failed; it goes on in %s s", TAIL_AGAIN_S)
        await asyncio.sleep(TAIL_AGAIN_S)
