"""An upstream behind a breaker: calls fail at once while its service rests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Self

from streaming.errors import UpstreamError
from streaming.upstream.breaker import UNWELL, Breaker, Rest, resting
from streaming.upstream.ports import ChatRequest, Chunk, Opened, Upstream, UpstreamCall, UsageChunk


class GuardedUpstream:
    """
    Models of one service share its breaker.

    `clock` gives epoch seconds. `changed` is told of every rest, and of None when the service is well
    again; it must not block.
    """

    def __init__(
        self, upstream: Upstream, breaker: Breaker, clock: Callable[[], float], changed: Callable[[Rest | None], None]
    ) -> None:
        self.inner = upstream
        self._breaker = breaker
        self._clock = clock
        self._changed = changed

    def call(self, request: ChatRequest) -> GuardedCall:
        """
        Prepare a call.

        Raises:
            UpstreamError: upstream_resting, with the time of the next try; or what the upstream itself refuses.
        """
        call = self.inner.call(request)
        now = self._clock()
        rest = self._breaker.admit(now)
        if rest is not None:
            raise resting(rest, now)
        return GuardedCall(call, self, now)

    def succeeded(self) -> None:
        rested = self._breaker.rest is not None
        self._breaker.succeeded()
        if rested:
            self._changed(None)

    def failed(self, error: UpstreamError, admitted_at: float) -> None:
        before = self._breaker.rest
        now = self._clock()
        self._breaker.failed(error.code, now, admitted_at=admitted_at, retry_after_s=error.retry_after_s)
        if self._breaker.rest != before:
            self._changed(self._breaker.rest)


class GuardedCall:
    """
    Hands chunks on, and tells the breaker how the call went: well with its first content.

    A service that breaks off after that gave something, and other answers may be whole.
    """

    def __init__(self, call: UpstreamCall, guard: GuardedUpstream, admitted_at: float) -> None:
        self._call = call
        self._chunks = aiter(call)
        self._guard = guard
        self._admitted_at = admitted_at
        self._judged = False

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Awaitable[Chunk]:
        return anext(self._chunks) if self._judged else self._first()

    async def close(self) -> bool:
        return await self._call.close()

    async def _first(self) -> Chunk:
        try:
            chunk = await anext(self._chunks)
        except UpstreamError as exc:
            self._judge(exc)
            raise
        if not isinstance(chunk, Opened | UsageChunk):
            self._judged = True
            self._guard.succeeded()
        return chunk

    def _judge(self, error: UpstreamError) -> None:
        self._judged = True
        if error.code in UNWELL:
            self._guard.failed(error, self._admitted_at)
        elif error.code != "call_closed":
            self._guard.succeeded()
