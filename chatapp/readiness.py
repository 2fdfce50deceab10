"""
Can a prompt be taken? Tried by what one needs: a write to the database, a write to Redis, a worker.

A look costs one commit of one page (which waits for no disk), three commands of Redis, and a new connection to the
database. It serves everybody who asks within two seconds, so probes cannot make load of it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from django.db import DatabaseError, connection
from django.utils.timezone import now
from redis.asyncio import Redis
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)

from chatapp import presence
from chatapp.models import Readiness
from chatapp.schema import sqlite_file

logger = logging.getLogger(__name__)

DATABASE, REDIS, WORKER = "database", "redis", "worker"
KEEP_S = 2.0
CHECK_S = 3.0
# SQLite says by itself that it is locked, before it is given up.
_BUSY_MS = 2_500
_KEY, _KEY_MS = "sidestream:ready", 60_000

# By the beginning of SQLite's name for a fault, or PostgreSQL's number.
_OF_DATABASE = {
    "SQLITE_BUSY": "The database is locked: another process holds it.",
    "SQLITE_LOCKED": "The database is locked: another process holds it.",
    "SQLITE_READONLY": "The database is read-only.",
    "SQLITE_FULL": "The database cannot be written: the disk is full.",
    "SQLITE_IOERR": "The database cannot be written: the disk fails, or is full.",
    "SQLITE_CANTOPEN": "The database cannot be opened.",
    "SQLITE_CORRUPT": "The database is damaged.",
    "SQLITE_NOTADB": "The database is damaged.",
    "SQLITE_ERROR": "The database is not up to date: run manage.py migrate.",
    "25006": "The database is read-only.",
    "42P01": "The database is not up to date: run manage.py migrate.",
    "53100": "The database cannot be written: the disk is full.",
    "53300": "The database takes no more connections.",
}
_OF_REDIS: tuple[tuple[type[RedisError], str], ...] = (
    (ReadOnlyError, "Redis takes no writes: it is a replica."),
    (OutOfMemoryError, "Redis takes no writes: its memory is full."),
    (BusyLoadingError, "Redis still reads its files."),
    (AuthenticationError, "Redis does not let us in."),
    (AuthorizationError, "Redis does not let us in."),
)


class Trial:
    """Tries it for one event loop. Faults are told by part, in sentences that any stranger may read."""

    def __init__(self, redis: Redis, tells: bool = True) -> None:
        """`tells` is for a process that nobody watches who tells of each change."""
        self._redis = redis
        self._tells = tells
        self._thread = ThreadPoolExecutor(1, "readiness")
        self._writing: asyncio.Future[str] | None = None
        self._look: asyncio.Task[Mapping[str, str]] | None = None
        self._good_until = 0.0
        self._told: Mapping[str, str] = {}

    async def faults(self) -> Mapping[str, str]:
        """Give what keeps a prompt from being taken: part → sentence. Takes at most `CHECK_S`."""
        clock = asyncio.get_running_loop().time
        if self._look is None or (self._look.done() and clock() >= self._good_until):
            self._look = asyncio.create_task(self._try(), name="readiness")
        return await asyncio.shield(self._look)

    def close(self) -> None:
        self._thread.shutdown(wait=False)

    async def _try(self) -> Mapping[str, str]:
        database, redis = await asyncio.gather(self._of_database(), self._of_redis())
        faults = {**database, **redis}
        if self._tells and faults != self._told:
            logger.log(logging.WARNING if faults else logging.INFO, "%s", _in_words(faults))
        self._told = faults
        self._good_until = asyncio.get_running_loop().time() + KEEP_S
        return faults

    async def _of_database(self) -> dict[str, str]:
        # One thread: while a write hangs, no further one is put behind it.
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().run_in_executor(self._thread, _write_to_database)
        done, _ = await asyncio.wait([self._writing], timeout=CHECK_S)
        fault = self._writing.result() if done else f"The database did not answer within {CHECK_S:g} s."
        return {DATABASE: fault} if fault else {}

    async def _of_redis(self) -> dict[str, str]:
        try:
            async with asyncio.timeout(CHECK_S):
                await self._redis.set(_KEY, 1, px=_KEY_MS)
                workers = await presence.living(self._redis)
        except (RedisError, OSError, TimeoutError) as exc:
            logger.debug("redis: %s", exc)
            # Without Redis nobody can know of workers, so only what is known to be missing is named.
            return {REDIS: _of_redis(exc)}
        return {} if workers else {WORKER: "No worker takes answers: none has given a sign of life for 10 s."}


def _write_to_database() -> str:
    """Write, and give what keeps it from being written; "" if nothing does."""
    if fault := _of_file(sqlite_file()):
        return fault
    try:
        _bound()
        row = Readiness.objects.filter(pk=1)
        if not row.update(at=now()):
            Readiness.objects.bulk_create([Readiness(pk=1, at=now())], ignore_conflicts=True)
    except DatabaseError as exc:
        logger.debug("database: %s", exc)
        return _of_database(exc)
    finally:
        connection.close()  # A file that was replaced is seen only by whoever opens it.
    return ""


def _of_file(file: Path | None) -> str:
    """A process that has a removed file open may write to it for ever; and to open one makes an empty one."""
    if file is None:
        return ""
    if not file.exists():
        return "The database is gone: its file was removed."
    return "" if os.access(file.parent, os.W_OK | os.X_OK) else "The database's folder cannot be written."


def _bound() -> None:
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            # What a power cut takes of this row is no loss, so no look waits for the disk.
            cursor.execute("PRAGMA synchronous = NORMAL")


def _of_database(exc: DatabaseError) -> str:
    cause = exc.__cause__
    name = str(getattr(cause, "sqlite_errorname", "") or getattr(cause, "sqlstate", "") or "")
    return next(
        (told for start, told in _OF_DATABASE.items() if name.startswith(start)), "The database cannot be used."
    )


def _of_redis(exc: Exception) -> str:
    if isinstance(exc, ResponseError) and str(exc).startswith("MISCONF"):
        return "Redis takes no writes: it cannot write its own files."
    known = next((told for kind, told in _OF_REDIS if isinstance(exc, kind)), "")
    if known:
        return known
    return "Redis refuses a write." if isinstance(exc, ResponseError) else "Redis cannot be reached."


def _in_words(faults: Mapping[str, str]) -> str:
    return f"not ready: {' '.join(faults.values())}" if faults else "ready again"
