"""Asking a generation to stop. The request is recorded first; whoever drives answers it."""

from __future__ import annotations

from collections.abc import Callable

from streaming.lifecycle import TERMINAL, State
from streaming.log.ports import Log, Ref
from streaming.store import Store
from streaming.takeover import end_unowned


async def request_cancel(log: Log, store: Store, ref: Ref, by: str, clock: Callable[[], int]) -> State:
    """
    Record that `by` asked to stop a generation; give its state afterwards.

    One that nobody has begun to drive is ended here and now, so its model is never called. Repeating
    the request is harmless.

    Raises:
        LogUnavailable: the request could not be recorded; nothing was asked.
    """
    job = await store.job(ref.gen)
    if job is None:
        # It was deleted meanwhile, which stops it for good.
        return State.CANCELLED
    if job.state in TERMINAL:
        return job.state
    asked = await log.cancel(ref, by)
    if not asked.granted or asked.seq > 0 or job.attempt > 0:
        return asked.state
    claim = await log.claim(ref, job.attempt)
    if not claim.granted:
        return claim.state
    return await end_unowned(log, store, job, claim, clock)
