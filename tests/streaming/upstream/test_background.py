"""A response in the background, over a connection that does not last."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streaming.errors import UpstreamError
from streaming.upstream.background import BackgroundCall, BackgroundUpstream
from streaming.upstream.ports import ChatRequest, Chunk, FinishChunk, Message, Opened, TextChunk, UsageChunk
from tests.streaming.upstream.calls import text_of
from tests.streaming.upstream.server import SSE, Behaviour, Connection, Server, answers, serving

ASK = ChatRequest("some-model", (Message("user", "Hi"),))


def event(number: int, kind: str, **members: Any) -> bytes:
    return b"data: " + json.dumps({"type": kind, "sequence_number": number, **members}).encode() + b"\n\n"


CREATED = event(0, "response.created", response={"id": "resp_1"})
WORDS = [event(n, "response.output_text.delta", output_index=0, content_index=0, delta=f"w{n} ") for n in range(1, 5)]
COMPLETED = event(
    5, "response.completed",
    response={"id": "resp_1", "status": "completed", "usage": {"input_tokens": 3, "output_tokens": 4}},
)  # fmt: skip


class Service:
    """Breaks off each stream where its plan says; joins streams and cancels responses as it is asked to."""

    def __init__(self, *plan: bytes, cancels: bool = True) -> None:
        self._plan = list(plan)
        self._cancels = cancels
        self.asked: list[str] = []

    async def __call__(self, connection: Connection) -> None:
        line = connection.request.split(b"\r\n")[0].decode()
        self.asked.append(line.rpartition(" ")[0])
        if line.endswith("/cancel HTTP/1.1"):
            await answers("200 OK" if self._cancels else "500 No", b"{}")(connection)
            return
        piece = self._plan.pop(0)
        await connection.send(SSE, piece.removesuffix(b"HOLD"))
        if piece.endswith(b"HOLD"):
            await connection.gone()


def upstream(server: Server, pauses_s: tuple[float, ...] = (0.01, 0.01)) -> BackgroundUpstream:
    return BackgroundUpstream(server.url, "the-key", pauses_s=pauses_s)


async def read(service: Behaviour) -> tuple[list[Chunk], UpstreamError | None]:
    chunks: list[Chunk] = []
    async with serving(service) as server:
        call = upstream(server).call(ASK)
        try:
            async for chunk in call:
                chunks.append(chunk)  # noqa: PERF401 (what came before a failure counts)
        except UpstreamError as error:
            return chunks, error
        finally:
            await call.close()
    return chunks, None


async def test_a_lost_connection_is_joined_again_behind_what_was_heard() -> None:
    service = Service(CREATED + WORDS[0] + WORDS[1], WORDS[2] + WORDS[3] + COMPLETED)
    chunks, error = await read(service)
    assert (text_of(chunks), error) == ("w1 w2 w3 w4 ", None)
    assert service.asked == ["POST /v1/responses", "GET /v1/responses/resp_1?stream=true&starting_after=2"]


async def test_what_is_repeated_is_passed_over() -> None:
    chunks, _ = await read(Service(CREATED + WORDS[0], CREATED + b"".join(WORDS) + COMPLETED))
    assert text_of(chunks) == "w1 w2 w3 w4 "


async def test_the_answer_is_one_answer_however_many_connections_it_took() -> None:
    chunks, _ = await read(Service(CREATED + WORDS[0], WORDS[1], WORDS[2], WORDS[3], COMPLETED))
    assert [chunk for chunk in chunks if not isinstance(chunk, TextChunk)] == [
        Opened(), UsageChunk(3, 4), FinishChunk("stop", "completed"),
    ]  # fmt: skip


async def test_a_service_that_stays_away_is_given_up() -> None:
    chunks, error = await read(Service(CREATED + WORDS[0], b"", b""))
    assert (text_of(chunks), error and error.code) == ("w1 ", "incomplete_stream")


async def test_a_connection_that_is_lost_before_the_response_has_a_name_is_lost() -> None:
    service = Service(b"")
    _, error = await read(service)
    assert (error and error.code, len(service.asked)) == ("incomplete_stream", 1)


async def test_what_the_service_reports_is_no_lost_connection() -> None:
    service = Service(CREATED + event(1, "error", code="server_error", message="boom"))
    _, error = await read(service)
    assert (error and error.code, len(service.asked)) == ("upstream_reported", 1)


@pytest.mark.parametrize("cancels", [True, False])
async def test_stopping_is_proven_by_the_service_s_own_word(cancels: bool) -> None:
    service = Service(CREATED + WORDS[0] + b"HOLD", cancels=cancels)
    async with serving(service) as server:
        call = upstream(server).call(ASK)
        await until_text(call)
        assert await call.close() is cancels
    assert service.asked[-1] == "POST /v1/responses/resp_1/cancel"


async def test_a_request_that_may_have_arrived_is_not_proven_stopped_before_its_response_has_a_name() -> None:
    async with serving(Service(b"HOLD")) as server:
        call = upstream(server).call(ASK)
        assert isinstance(await anext(call), Opened)
        assert not await call.close()


async def test_a_request_that_was_never_sent_is_proven_stopped() -> None:
    async with serving(Service()) as server:
        assert await upstream(server).call(ASK).close()


async def test_a_whole_answer_needs_no_cancel() -> None:
    service = Service(CREATED + COMPLETED)
    await read(service)
    assert service.asked == ["POST /v1/responses"]


async def until_text(call: BackgroundCall) -> None:
    while not isinstance(await anext(call), TextChunk):
        pass
