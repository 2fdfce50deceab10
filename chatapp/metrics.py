"""What Prometheus is told of this web process, and of the whole as database and Redis know it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db.models import Count, F
from django.utils.timezone import now
from prometheus_client import REGISTRY, Counter, Gauge, disable_created_metrics, generate_latest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from chatapp import presence
from chatapp.database import in_database
from chatapp.models import NOT_ENDED, Generation
from streaming.lifecycle import LIVE, TERMINAL

RECENTLY = timedelta(minutes=5)
TIMEOUT_S = 2.0

# When a counter began is of no use to anybody here, and doubles their number.
disable_created_metrics()  # type: ignore[no-untyped-call]

FRAMES = Counter("sidestream_frames", "Frames sent by this process.", ["transport"])
FRAME_BYTES = Counter("sidestream_frame_bytes", "Bytes of the frames sent by this process.", ["transport"])
_STREAMS = Gauge("sidestream_streams", "Live connections of this process.")
_LIVE_NOW = Gauge("sidestream_generations", "Generations that have not ended, everywhere.", ["state"])
_ENDED = Gauge(
    "sidestream_generations_ended_recently",
    "Generations that ended within five minutes, everywhere; code is that of their error.",
    ["state", "code"],
)
_WORKERS = Gauge("sidestream_workers", "Workers that gave a sign of life within ten seconds.")
_REDIS = Gauge("sidestream_redis_round_trip_seconds", "One round trip to Redis, just now.")


class Sent:
    """Counts the frames of one transport. Made once, since looking a label up costs more than counting."""

    def __init__(self, transport: str) -> None:
        self._frames = FRAMES.labels(transport)
        self._bytes = FRAME_BYTES.labels(transport)

    def count(self, size: int) -> None:
        self._frames.inc()
        self._bytes.inc(size)


async def exposition(redis: Redis, streams: int) -> bytes:
    """Measure what is not counted as it happens, and write it all down."""
    _STREAMS.set(streams)
    await asyncio.gather(_measure_redis(redis), _measure_generations())
    return generate_latest(REGISTRY)


async def _measure_redis(redis: Redis) -> None:
    began = time.perf_counter()
    try:
        async with asyncio.timeout(TIMEOUT_S):
            workers: float = await presence.living(redis)
        # Two commands, one after the other.
        round_trip = (time.perf_counter() - began) / 2
    except (RedisError, OSError, TimeoutError):
        workers = round_trip = math.nan
    _WORKERS.set(workers)
    _REDIS.set(round_trip)


async def _measure_generations() -> None:
    live, ended = await in_database(_count)
    for state in sorted(LIVE):
        _LIVE_NOW.labels(state).set(dict(live).get(state, 0))
    _ENDED.clear()
    for state, code, count in ended:
        _ENDED.labels(state, code or "").set(count)


def _count() -> tuple[Sequence[Any], Sequence[Any]]:
    rows = Generation.objects.order_by()
    live = rows.filter(NOT_ENDED).values_list("state").annotate(Count("pk"))
    ended = rows.filter(ended_at__gte=now() - RECENTLY, state__in=sorted(TERMINAL))
    return list(live), list(ended.values_list("state", F("error__code")).annotate(Count("pk")))
