from __future__ import annotations

import pytest

from streaming.errors import UpstreamError
from streaming.upstream.breaker import FAILURES_TO_REST, Breaker, Rest
from streaming.upstream.faults import fault
from streaming.upstream.guarded import GuardedUpstream
from streaming.upstream.ports import ChatRequest, Chunk, Message, Opened, TextChunk
from tests.streaming.fakes import HELLO, LedUpstream

ASK = ChatRequest("m", (Message("user", "Hi"),))


class Guard:
    """A guarded upstream, its clock, and what it told."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.told: list[Rest | None] = []
        self.led = LedUpstream()
        self.upstream = GuardedUpstream(self.led, Breaker(), lambda: self.now, self.told.append)

    async def call(self, *script: Chunk | Exception) -> list[Chunk]:
        self.led.scripts = [list(script)]
        call = self.upstream.call(ASK)
        try:
            return [chunk async for chunk in call]
        finally:
            await call.close()

    async def fail(self, code: str, *before: Chunk, times: int = FAILURES_TO_REST) -> None:
        for _ in range(times):
            with pytest.raises(UpstreamError, match=fault(code).message):
                await self.call(*before, fault(code))


@pytest.fixture
def guard() -> Guard:
    return Guard()


async def test_chunks_come_through_as_they_are(guard: Guard) -> None:
    assert await guard.call(*HELLO) == list(HELLO)


async def test_a_call_of_a_resting_service_fails_at_once_and_sends_nothing(guard: Guard) -> None:
    await guard.fail("connect_refused")
    sent = len(guard.led.calls)
    with pytest.raises(UpstreamError) as caught:
        guard.upstream.call(ASK)
    assert (caught.value.code, len(guard.led.calls)) == ("upstream_resting", sent)


@pytest.mark.parametrize("code", ["unauthorized", "rate_limited", "bad_request", "model_not_found"])
async def test_a_service_that_refuses_a_request_is_well(guard: Guard, code: str) -> None:
    await guard.fail(code, times=FAILURES_TO_REST + 1)
    assert guard.told == []


async def test_a_service_that_breaks_off_in_mid_answer_is_not_left_alone(guard: Guard) -> None:
    await guard.fail("connection_lost", Opened(), TextChunk("a"), times=FAILURES_TO_REST + 1)
    assert guard.told == []


async def test_a_service_that_accepts_and_then_says_nothing_is(guard: Guard) -> None:
    await guard.fail("first_byte_timeout", Opened())
    assert guard.told[-1] is not None


async def test_the_begin_and_the_end_of_a_rest_are_told(guard: Guard) -> None:
    await guard.fail("overloaded")
    guard.now += 60
    await guard.call(*HELLO)
    assert guard.told == [Rest(1000.0, 1010.0, "overloaded"), None]


async def test_a_call_that_its_caller_closed_says_nothing_of_the_service(guard: Guard) -> None:
    await guard.fail("connect_refused", times=FAILURES_TO_REST - 1)
    await guard.fail("call_closed", times=1)
    await guard.fail("connect_refused", times=1)
    assert guard.told[-1] is not None
