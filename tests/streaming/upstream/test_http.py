from __future__ import annotations

import gzip
import json
import socket
from typing import Any, Final

import pytest

from streaming.upstream.http import Deadlines, HttpCall, Limits
from streaming.upstream.openai_chat import OpenAIChat
from streaming.upstream.ports import FinishChunk, Opened, TextChunk
from tests.streaming.upstream.calls import KEY, chat_call, failure, opened, run, text_of
from tests.streaming.upstream.server import CHUNKED, DONE, GZIP, SSE, STOP, TEXT, answers, holds, sends, serving

REFUSALS: Final[list[dict[str, Any]]] = [
    {
        "names": "max_tokens",
        "status": "400 Bad Request",
        "body": {
            "error": {
                "message": "Unsupported parameter: 'max_tokens' is not supported with this model.",
                "type": "invalid_request_error",
                "param": "max_tokens",
                "code": "unsupported_parameter",
            }
        },
        "said": "Unsupported parameter: 'max_tokens' is not supported with this model.",
    },
    {
        "names": "temperature",
        "status": "422 Unprocessable Content",
        "body": {"detail": [{"loc": ["body", "temperature"], "msg": "Input should be less than 2", "type": "lt"}]},
        "said": "body.temperature: Input should be less than 2",
    },
]


async def test_a_whole_answer_is_opened_then_its_chunks_then_its_finish() -> None:
    async with serving(sends(SSE, TEXT, STOP, DONE)) as server:
        chunks, error = await run(chat_call(server.url))
    assert (chunks, error) == ([Opened(), TextChunk("A"), FinishChunk("stop", "stop")], None)


async def test_the_body_and_the_headers_are_sent_as_given() -> None:
    async with serving(sends(SSE, STOP)) as server:
        await run(chat_call(server.url))
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert (head.startswith(b"POST /v1 "), f"Bearer {KEY}".encode() in head, body) == (True, True, b"{}")


async def test_reading_stops_at_the_terminator_though_the_connection_stays_open() -> None:
    async with serving(holds(SSE, TEXT, STOP, DONE)) as server:
        chunks, _ = await run(chat_call(server.url))
        await server.left.wait()
    assert chunks[-1] == FinishChunk("stop", "stop")


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        ("400 Bad Request", "bad_request", False),
        ("401 Unauthorized", "unauthorized", False),
        ("402 Payment Required", "quota_exhausted", False),
        ("403 Forbidden", "forbidden", False),
        ("404 Not Found", "model_not_found", False),
        ("408 Request Timeout", "upstream_error", True),
        ("409 Conflict", "upstream_error", True),
        ("413 Content Too Large", "payload_too_large", False),
        ("422 Unprocessable Content", "bad_request", False),
        ("429 Too Many Requests", "rate_limited", True),
        ("500 Internal Server Error", "upstream_error", True),
        ("502 Bad Gateway", "upstream_error", True),
        ("503 Service Unavailable", "overloaded", True),
        ("529 Overloaded", "overloaded", True),
        ("302 Found", "redirect_refused", False),
        ("204 No Content", "not_a_stream", False),
    ],
)
async def test_each_status_has_its_code(status: str, code: str, retryable: bool) -> None:
    async with serving(answers(status)) as server:
        error = await failure(chat_call(server.url))
    assert (error.code, error.retryable) == (code, retryable)


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        ("429 Too Many", b'{"error":{"code":"insufficient_quota"}}', "quota_exhausted"),
        ("400 Bad", b'{"error":{"code":"context_length_exceeded"}}', "context_too_long"),
        ("400 Bad", b'{"error":{"status":"UNAUTHENTICATED"}}', "unauthorized"),
        ("400 Bad", b'{"error":"text"}', "bad_request"),
        ("400 Bad", b"[1,2", "bad_request"),
        ("401 No", b'{"error":{"code":"rate_limit"}}', "unauthorized"),
    ],
)
async def test_the_body_of_an_error_is_heard_where_it_says_more_than_the_status(
    status: str, body: bytes, code: str
) -> None:
    async with serving(answers(status, body)) as server:
        assert (await failure(chat_call(server.url))).code == code


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry_After": "7"}, 7),
        ({"Retry_After": "7", "Retry_After_Ms": "250"}, 0.25),
        ({"Retry_After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"Retry_After": "soon"}, None),
        ({"Retry_After": "-1"}, None),
        ({"Retry_After": "nan"}, None),
        ({"Retry_After": "999999"}, None),
        ({}, None),
    ],
)
async def test_retry_after_is_read(headers: dict[str, str], seconds: float | None) -> None:
    async with serving(answers("429 Too Many", **headers)) as server:
        assert (await failure(chat_call(server.url))).retry_after_s == seconds


async def test_a_redirect_is_not_followed() -> None:
    async with serving(sends(SSE, STOP)) as elsewhere, serving(answers("307 Away", Location=elsewhere.url)) as server:
        await failure(chat_call(server.url))
    assert elsewhere.requests == []


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(answers("502 Bad Gateway")) as proxy, serving(sends(SSE, STOP)) as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        await run(chat_call(server.url))
    assert (len(proxy.requests), len(server.requests)) == (0, 1)


async def test_a_web_page_is_no_stream() -> None:
    async with serving(answers("200 OK", b"<!doctype html>", Content_Type="text/html; charset=utf-8")) as server:
        assert (await failure(chat_call(server.url))).code == "not_a_stream"


async def test_an_error_as_the_whole_body_of_a_200_is_an_error() -> None:
    body = b'{"error":{"message":"quota exceeded","type":"insufficient_quota"}}'
    async with serving(answers("200 OK", body, Content_Type="application/json")) as server:
        assert (await failure(chat_call(server.url))).code == "quota_exhausted"


async def test_the_words_of_the_service_go_to_the_detail_without_the_key() -> None:
    async with serving(answers("401 No", f"Incorrect key {KEY}, org-AbCdEfGhIjKlMnOp".encode())) as server:
        error = await failure(chat_call(server.url))
    assert "Incorrect key" in error.detail
    assert "Incorrect" not in error.message
    assert KEY not in error.detail
    assert "AbCdEfGhIjKlMnOp" not in error.detail


@pytest.mark.parametrize("value", ["Bearer sk-a\u200bb", "Bearer sk-a\nX: y", "sk-\u201cab", "sk-ab ", "sk-\x00ab", ""])
async def test_a_header_that_cannot_be_sent_is_refused_before_anything_is(value: str) -> None:
    async with serving(sends(SSE, STOP)) as server:
        error = await failure(HttpCall(server.url, {"Authorization": value}, b"{}", OpenAIChat(Limits())))
    assert (error.code, error.retryable, server.requests) == ("bad_credentials", False, [])
    assert "of the header Authorization" in error.detail
    assert "sk-" not in error.detail


async def test_a_fault_of_ours_ends_the_call_without_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: object, **__: object) -> None:
        raise ValueError(KEY)

    async with serving(sends(SSE, STOP)) as server:
        call = chat_call(server.url)
        monkeypatch.setattr(call._client, "build_request", explode)
        error = await failure(call)
    assert (error.code, KEY in error.detail) == ("internal_error", False)
    assert error.detail.startswith("ValueError at test_http.py")


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal["names"])
async def test_a_refused_parameter_is_named_and_the_service_s_words_are_kept(refusal: dict[str, Any]) -> None:
    body = json.dumps(refusal["body"]).encode()
    async with serving(answers(refusal["status"], body, Content_Type="application/json")) as server:
        error = await failure(chat_call(server.url))
    assert error.code == "bad_request"
    assert f"did not accept {refusal['names']}. " in error.message
    assert error.said == refusal["said"]


async def test_the_service_s_words_are_cleaned_bounded_and_without_secrets() -> None:
    words = f"a\u202eb\x1b[31mc\u200bd\u2028e {KEY} " + "x " * 9000
    async with serving(answers("400 Bad", json.dumps({"error": {"message": words}}).encode())) as server:
        said = (await failure(chat_call(server.url))).said
    assert said.startswith("ab[31mcd\ne *** x x")
    assert len(said) <= 2000


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (b"model is loading", "text/plain", "model is loading"),
        (b"<html><p>Bad Gateway", "text/html", ""),
        (b"<html><p>Bad Gateway", "", ""),
        (b"", "text/plain", ""),
        (b'{"error": "no"}', "text/html", "no"),
    ],
)
async def test_words_that_are_no_json_are_kept_if_they_are_meant_to_be_read(body: bytes, kind: str, said: str) -> None:
    async with serving(answers("400 Bad", body, Content_Type=kind)) as server:
        assert (await failure(chat_call(server.url))).said == said


async def test_a_clean_end_without_the_sign_of_the_end_is_incomplete() -> None:
    async with serving(sends(SSE, TEXT, b'data: {"choices":[{"del')) as server:
        chunks, error = await run(chat_call(server.url))
    assert (text_of(chunks), error and error.code) == ("A", "incomplete_stream")


async def test_a_broken_connection_is_lost_even_after_the_finish_reason() -> None:
    body = TEXT + STOP
    async with serving(sends(CHUNKED, b"%x\r\n%b\r\n" % (len(body), body))) as server:
        chunks, error = await run(chat_call(server.url))
    assert (text_of(chunks), error and error.code) == ("A", "connection_lost")


async def test_what_came_before_an_error_in_the_same_piece_is_given_out_first() -> None:
    async with serving(sends(SSE, TEXT + b'data: {"error":"boom"}\n\n')) as server:
        chunks, error = await run(chat_call(server.url))
    assert (text_of(chunks), error and error.code) == ("A", "upstream_reported")


async def test_a_line_of_ten_megabytes_is_too_long() -> None:
    async with serving(sends(SSE, TEXT, b"data: ", b"x" * 10_000_000)) as server:
        chunks, error = await run(chat_call(server.url))
    assert (text_of(chunks), error and error.code) == ("A", "line_too_long")


async def test_an_answer_is_stopped_at_its_limit() -> None:
    async with serving(holds(SSE, TEXT * 5)) as server:
        chunks, error = await run(chat_call(server.url, limits=Limits(answer_chars=3)))
        await server.left.wait()
    assert (text_of(chunks), error and error.code) == ("AAA", "answer_too_long")


async def test_a_tool_call_is_stopped_at_its_limit() -> None:
    call = b'{"index":0,"id":"c","function":{"name":"f","arguments":"1234"}}'
    piece = b'data: {"choices":[{"delta":{"tool_calls":[%b]}}]}\n\n' % call
    async with serving(holds(SSE, piece * 5)) as server:
        assert (await failure(chat_call(server.url, limits=Limits(tool_bytes=10)))).code == "tool_call_too_long"


async def test_a_compressed_answer_is_read() -> None:
    async with serving(sends(GZIP, gzip.compress(TEXT + STOP + DONE))) as server:
        assert (await run(chat_call(server.url)))[1] is None


async def test_a_truncated_compressed_answer_is_incomplete() -> None:
    async with serving(sends(GZIP, gzip.compress(TEXT + STOP + DONE)[:-20])) as server:
        assert (await failure(chat_call(server.url))).code == "incomplete_stream"


async def test_a_corrupt_compressed_answer_is_malformed() -> None:
    async with serving(sends(GZIP, b"no gzip at all")) as server:
        assert (await failure(chat_call(server.url))).code == "malformed_stream"


async def test_a_port_that_nobody_listens_on_refuses() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error = await failure(chat_call(f"http://127.0.0.1:{taken.getsockname()[1]}/v1"))
    assert (error.code, error.retryable) == ("connect_refused", True)


async def test_a_name_that_does_not_exist_is_a_dns_failure() -> None:
    assert (await failure(chat_call("http://no-such-host.invalid/v1"))).code == "dns_failure"


async def test_tls_to_a_port_that_speaks_plain_http_fails_as_tls() -> None:
    async with serving(sends(b"HTTP/1.1 400 Bad Request\r\n\r\n"), reads_request=False) as server:
        assert (await failure(chat_call(server.url.replace("http:", "https:")))).code == "tls_failure"


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/v1", "no address", "http://127.0.0.1:99999/v1", "http://\x00/"])
async def test_an_address_that_is_none_fails_as_one_of_ours(url: str) -> None:
    assert (await failure(chat_call(url))).code in {"bad_address", "connect_failed"}


async def test_a_finish_reason_without_a_terminator_is_taken_after_a_while() -> None:
    async with serving(holds(SSE, TEXT, STOP)) as server:
        chunks, error = await run(chat_call(server.url, deadlines=Deadlines(after_finish_s=0.05)))
        await server.left.wait()
    assert (chunks[-1], error) == (FinishChunk("stop", "stop"), None)


async def test_an_error_behind_the_finish_reason_is_still_heard() -> None:
    async with serving(holds(SSE, TEXT, STOP, b'data: {"error":"boom"}\n\n')) as server:
        assert (await failure(chat_call(server.url))).code == "upstream_reported"


async def test_iterating_on_after_the_end_gives_nothing_more() -> None:
    async with serving(sends(SSE, STOP)) as server:
        call = await opened(chat_call(server.url))
        assert [chunk async for chunk in call] == [FinishChunk("stop", "stop")]
        assert [chunk async for chunk in call] == []
        await call.close()
