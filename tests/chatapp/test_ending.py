"""Ending tasks for certain."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from chatapp.ending import end, is_told_to_end


async def deaf(times: int) -> None:
    """Swallow so many cancellations."""
    for _ in range(times):
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


async def test_a_task_that_swallows_a_cancellation_is_ended_all_the_same() -> None:
    task = asyncio.create_task(deaf(2))
    await asyncio.sleep(0)
    await end(task)
    assert task.done()


async def test_a_task_that_fails_while_it_ends_is_of_no_interest() -> None:
    async def fail() -> None:
        raise ValueError

    await end(asyncio.create_task(fail()))


async def test_no_tasks_are_ended_at_once() -> None:
    await end()


async def test_a_swallowed_cancellation_is_still_known() -> None:
    async def ask() -> bool:
        await deaf(1)
        return is_told_to_end(asyncio.current_task())

    task = asyncio.create_task(ask())
    await asyncio.sleep(0)
    task.cancel()
    assert await task
