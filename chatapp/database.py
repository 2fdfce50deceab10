"""Database work from asyncio, in a small pool of threads of our own.

Django's own answer (asgiref, thread_sensitive) runs all such work of a WebSocket consumer on one
thread of the process, and keeps a connection for as long as a stream is open. Here the number of
connections is bounded, and each is closed when its work is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.db import connections

P = ParamSpec("P")
T = TypeVar("T")

_POOL = ThreadPoolExecutor(max_workers=8, thread_name_prefix="database")


async def in_database(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run synchronous database work in a thread. Work that has begun goes on when the waiter is cancelled."""
    work: Callable[[], T] = partial(call, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_POOL, _run, work)


def _run(work: Callable[[], Any]) -> Any:
    try:
        return work()
    finally:
        connections.close_all()
