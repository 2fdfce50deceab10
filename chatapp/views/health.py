"""For whoever supervises the process: does it live, and can it serve."""

from __future__ import annotations

import asyncio
import logging

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from redis.exceptions import RedisError

from chatapp import presence
from chatapp.database import in_database
from chatapp.wiring import web

logger = logging.getLogger(__name__)

CHECK_S = 3.0


async def healthz(_request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok\n", content_type="text/plain", headers={"Cache-Control": "no-store"})


async def readyz(_request: HttpRequest) -> HttpResponse:
    """Answer 200, or 503 with the names of what is missing: database, redis, worker."""
    database, redis = await asyncio.gather(_database_missing(), _redis_missing())
    missing = [*database, *redis]
    body = {"ready": not missing, "missing": missing}
    return JsonResponse(body, status=503 if missing else 200, headers={"Cache-Control": "no-store"})


async def _database_missing() -> list[str]:
    try:
        async with asyncio.timeout(CHECK_S):
            await in_database(_ask_database)
    except (DatabaseError, TimeoutError) as exc:
        logger.warning("not ready: database: %s", exc)
        return ["database"]
    return []


async def _redis_missing() -> list[str]:
    try:
        async with asyncio.timeout(CHECK_S):
            workers = await presence.living(web().redis)
    except (RedisError, OSError, TimeoutError) as exc:
        logger.warning("not ready: redis: %s", exc)
        # Without Redis nobody can know of workers, so only what is known to be missing is named.
        return ["redis"]
    return [] if workers else ["worker"]


def _ask_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
