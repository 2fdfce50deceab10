"""Database work from asyncio, in a small pool of threads of our own.

Django's own answer (asgiref, thread_sensitive) runs all such work of a WebSocket consumer on one
thread of the process, and keeps a connection for as long as a stream is open. Here the number of
connections is bounded: one for each thread, kept for CONN_MAX_AGE, since opening one costs as much as
three queries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any, ParamSpec, TypeVar

from django.core.signals import request_finished
from django.db import close_old_connections, connections

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 8
_POOL = ThreadPoolExecutor(THREADS, "database")
_QUICK_THREADS = 2
_QUICK_POOL = ThreadPoolExecutor(_QUICK_THREADS, "database-quick")


async def in_database(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run synchronous database work in a thread. Work that has begun goes on when the waiter is cancelled."""
    return await _in(_POOL, partial(call, *args, **kwargs))


async def look_up(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run what only reads a row or two in threads of its own: a stream waits for it, and for no slow query."""
    return await _in(_QUICK_POOL, partial(call, *args, **kwargs))


async def _in(pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(pool, _run, work)


def close_pool() -> None:
    """Close the connections of all threads; the next work opens them again."""
    for pool, threads in ((_POOL, THREADS), (_QUICK_POOL, _QUICK_THREADS)):
        together = Barrier(threads)  # Each thread takes one, since none comes back before all have begun.
        for closing in [pool.submit(_close_together, together) for _ in range(threads)]:
            closing.result()


def _close_together(together: Barrier) -> None:
    together.wait()
    connections.close_all()


def _run(work: Callable[[], Any]) -> Any:
    try:
        return work()
    finally:
        close_old_connections()


def _close_own(**_: object) -> None:
    """Keep no connection of a request's own thread, which ends with the request."""
    connections.close_all()


request_finished.connect(_close_own, dispatch_uid="close a request's own connections")
