"""A response in the background, over a connection that does not last."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from streaming.errors import UpstreamError
from streaming.upstream.background import BackgroundCall, BackgroundUpstream
from streaming.upstream.deadlines import Deadlines
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


def response(status: str, text: str = "", **members: Any) -> Behaviour:
    """Answer with the response itself."""
    message = {"type": "message", "content": [{"type": "output_text", "text": text}]}
    whole = {"object": "response", "id": "resp_1", "status": status, "output": [message] if text else [], **members}
    return answers("200 OK", json.dumps(whole).encode(), Content_Type="application/json")


GONE = answers("404 Not Found", b'{"error": {"message": "no such response"}}')
PAGE = b"<!doctype html><title>Sign in</title>"
REFUSALS = [
    *(answers(status) for status in ("400 Bad Request", "401 No", "404 Gone", "410 Gone", "429 Later", "500 No",
                                     "503 Later", "302 There")),
    answers("200 OK", PAGE, Content_Type="text/html"),
    answers("200 OK", PAGE, Content_Type="text/event-stream"),
    answers("200 OK", b'{"error": {"code": "not_found", "message": "no"}}', Content_Type="text/event-stream"),
    answers("200 OK", b'{"detail": "Not authenticated"}', Content_Type="application/json"),
    response("in_progress"),
]  # fmt: skip


class Service:
    """
    Answers each request as its plan says, with a stream that breaks off, or otherwise, and the last way for ever.

    It cancels responses as it is asked to.
    """

    def __init__(self, *plan: bytes | Behaviour, cancels: bool = True) -> None:
        self._plan = list(plan)
        self._cancels = cancels
        self.asked: list[str] = []

    async def __call__(self, connection: Connection) -> None:
        line = connection.request.split(b"\r\n")[0].decode()
        self.asked.append(line.rpartition(" ")[0])
        if line.endswith("/cancel HTTP/1.1"):
            await answers("200 OK" if self._cancels else "500 No", b"{}")(connection)
            return
        piece = self._plan.pop(0) if len(self._plan) > 1 else self._plan[0]
        if not isinstance(piece, bytes):
            await piece(connection)
            return
        await connection.send(SSE, piece.removesuffix(b"HOLD"))
        if piece.endswith(b"HOLD"):
            await connection.gone()


def upstream(server: Server, deadlines: Deadlines | None = None) -> BackgroundUpstream:
    return BackgroundUpstream(
        server.url, "the-key", deadlines or Deadlines(), pauses_s=(0.01, 0.01), poll_s=0.01
    )  # fmt: skip


async def read(service: Behaviour, deadlines: Deadlines | None = None) -> tuple[list[Chunk], UpstreamError | None]:
    chunks: list[Chunk] = []
    async with serving(service) as server:
        call = upstream(server, deadlines).call(ASK)
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


async def test_a_stream_that_says_that_it_is_in_progress_is_joined_again_all_the_same() -> None:
    begun = CREATED + event(1, "response.in_progress", response={"id": "resp_1", "status": "in_progress"})
    service = Service(begun, b"".join(WORDS[1:]) + COMPLETED)
    chunks, error = await read(service)
    assert (text_of(chunks), error) == ("w2 w3 w4 ", None)
    assert service.asked[1].endswith("starting_after=1")


async def test_what_is_repeated_is_passed_over() -> None:
    chunks, _ = await read(Service(CREATED + WORDS[0], CREATED + b"".join(WORDS) + COMPLETED))
    assert text_of(chunks) == "w1 w2 w3 w4 "


async def test_the_answer_is_one_answer_however_many_connections_it_took() -> None:
    chunks, _ = await read(Service(CREATED + WORDS[0], WORDS[1], WORDS[2], WORDS[3], COMPLETED))
    assert [chunk for chunk in chunks if not isinstance(chunk, TextChunk)] == [
        Opened(), UsageChunk(3, 4), FinishChunk("stop", "completed"),
    ]  # fmt: skip


async def test_a_service_that_stays_away_is_given_up() -> None:
    chunks, error = await read(Service(CREATED + WORDS[0], b""))
    assert (text_of(chunks), error and error.code) == ("w1 ", "response_lost")


async def test_a_connection_that_is_lost_before_the_response_has_a_name_is_lost() -> None:
    service = Service(b"")
    _, error = await read(service)
    assert (error and error.code, len(service.asked)) == ("incomplete_stream", 1)


async def test_what_the_service_reports_is_no_lost_connection() -> None:
    service = Service(CREATED + event(1, "error", code="server_error", message="boom"))
    _, error = await read(service)
    assert (error and error.code, len(service.asked)) == ("upstream_reported", 1)


@pytest.mark.parametrize("refuses", REFUSALS)
async def test_where_joining_is_refused_the_response_is_asked_for_until_it_has_ended(refuses: Behaviour) -> None:
    runs, whole = response("in_progress", "w1 w2"), response("completed", "w1 w2 w3 w4 ")
    service = Service(CREATED + WORDS[0], refuses, runs, runs, runs, runs, whole)
    chunks, error = await read(service)
    assert (text_of(chunks), chunks[-1], error) == ("w1 w2 w3 w4 ", FinishChunk("stop", "completed"), None)
    join, *polls = service.asked[1:]
    assert (join, set(polls)) == (
        "GET /v1/responses/resp_1?stream=true&starting_after=1", {"GET /v1/responses/resp_1"},
    )  # fmt: skip


async def test_a_response_that_nobody_gives_back_is_lost_and_not_cancelled() -> None:
    service = Service(CREATED + WORDS[0], GONE)
    chunks, error = await read(service)
    assert error is not None
    assert (text_of(chunks), error.code, error.retryable) == ("w1 ", "response_lost", False)
    assert "It may still exist" in error.message
    assert not any("cancel" in asked for asked in service.asked)


async def test_looks_that_fail_now_and_then_lose_nothing() -> None:
    runs = response("queued")
    service = Service(
        CREATED + WORDS[0], GONE, b"", runs, b"", runs, answers("502 No"), response("completed", "w1 w2 ")
    )
    chunks, error = await read(service)
    assert (text_of(chunks), error) == ("w1 w2 ", None)


async def test_a_response_that_never_ends_is_not_looked_for_for_ever() -> None:
    service = Service(CREATED + WORDS[0], response("in_progress"))
    _, error = await read(service, Deadlines(total_s=0.2))
    assert (error and error.code, any("cancel" in asked for asked in service.asked)) == ("response_lost", False)


async def test_a_service_s_wish_to_wait_moves_no_deadline() -> None:
    service = Service(CREATED + WORDS[0], answers("429 Later", Retry_After="3600"))
    _, error = await read(service, Deadlines(total_s=0.2))
    assert error is not None
    assert error.code == "response_lost"


async def test_a_response_that_failed_meanwhile_says_so() -> None:
    failed = response("failed", error={"code": "server_error", "message": "boom"})
    service = Service(CREATED + WORDS[0], GONE, failed)
    chunks, error = await read(service)
    assert (text_of(chunks), error and error.code) == ("w1 ", "upstream_reported")
    assert service.asked[-1].startswith("GET")


async def test_a_response_whose_text_is_not_what_came_is_an_error() -> None:
    _, error = await read(Service(CREATED + WORDS[0], GONE, response("completed", "something else")))
    assert error is not None
    assert error.code == "hole_in_answer"


async def test_nothing_is_told_behind_a_gap() -> None:
    service = Service(CREATED + WORDS[0] + WORDS[2] + WORDS[3], WORDS[1] + WORDS[2] + WORDS[3] + COMPLETED)
    chunks, error = await read(service)
    assert (text_of(chunks), error) == ("w1 w2 w3 w4 ", None)
    assert service.asked[1].endswith("starting_after=1")


async def test_a_gap_that_stays_is_made_up_for_by_the_response_itself() -> None:
    gap = WORDS[2] + WORDS[3] + COMPLETED
    service = Service(CREATED + WORDS[0] + gap, gap, response("completed", "w1 w2 w3 w4 "))
    chunks, error = await read(service)
    assert (text_of(chunks), error) == ("w1 w2 w3 w4 ", None)
    assert [asked.partition("?")[2] for asked in service.asked] == ["", "stream=true&starting_after=1", ""]


async def test_a_final_event_behind_a_gap_ends_no_answer_before_its_text() -> None:
    whole = {"id": "resp_1", "status": "completed", "output": [{"type": "message", "content": "w1 w2 w3 w4 "}]}
    final = event(5, "response.completed", response=whole)
    service = Service(CREATED + WORDS[0], final, final, response("completed", "w1 w2 w3 w4 "))
    chunks, error = await read(service)
    assert (text_of(chunks), error) == ("w1 w2 w3 w4 ", None)


async def test_a_stream_without_numbers_cannot_be_joined_so_the_response_is_asked_for() -> None:
    bare = b'data: {"type": "response.created", "response": {"id": "resp_1"}}\n\n'
    service = Service(bare, response("completed", "all"))
    chunks, error = await read(service)
    assert (text_of(chunks), error, service.asked[1]) == ("all", None, "GET /v1/responses/resp_1")


async def test_a_service_that_does_not_stream_at_all_is_asked_until_the_end() -> None:
    chunks, error = await read(Service(response("queued"), response("in_progress"), response("completed", "all")))
    assert (text_of(chunks), error) == ("all", None)


async def test_stopping_while_the_response_is_looked_for_cancels_it() -> None:
    service = Service(CREATED + WORDS[0], response("in_progress"))
    async with serving(service) as server:
        call = upstream(server).call(ASK)
        await until_text(call)
        reading = asyncio.create_task(anext(call))  # type: ignore[arg-type]
        while len(service.asked) < 4:
            await asyncio.sleep(0.001)
        assert await call.close()
        with pytest.raises(UpstreamError):
            await reading
    assert service.asked[-1] == "POST /v1/responses/resp_1/cancel"


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
    async with serving(Service(b"")) as server:
        assert await upstream(server).call(ASK).close()


async def test_a_whole_answer_needs_no_cancel() -> None:
    service = Service(CREATED + b"".join(WORDS) + COMPLETED)
    await read(service)
    assert service.asked == ["POST /v1/responses"]


async def until_text(call: BackgroundCall) -> None:
    while not isinstance(await anext(call), TextChunk):
        pass
