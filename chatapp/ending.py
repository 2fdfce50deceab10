"""Ending tasks for certain."""

from __future__ import annotations

import asyncio
from typing import Any

AGAIN_S = 0.1


async def end(*tasks: asyncio.Task[Any]) -> None:
    """
    Cancel tasks until they are done; what they raise is dropped.

    Once is not enough on Python 3.11: its `wait_for`, which redis-py calls for each command, swallows a
    cancellation that comes just as the awaited thing is done (python/cpython#86296).
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=AGAIN_S)
    await asyncio.gather(*tasks, return_exceptions=True)


def is_told_to_end(task: asyncio.Task[Any] | None) -> bool:
    """Say whether somebody cancelled a task, even if the cancellation was swallowed."""
    return task is not None and task.cancelling() > 0
