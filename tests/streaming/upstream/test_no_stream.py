"""A body that calls itself a stream, and is none; and one that is, however early it was cut."""

from __future__ import annotations

import gzip
import zlib

import pytest

from streaming.upstream.http import HttpCall
from streaming.upstream.limits import Limits
from streaming.upstream.no_stream import HEAD_BYTES, no_stream
from streaming.upstream.openai_chat import OpenAIChat
from tests.streaming.upstream.calls import KEY, chat_call, failure
from tests.streaming.upstream.server import CHUNKED, SSE, answers, sends, serving
from tests.streaming.upstream.speech import SPEECHES
from tests.streaming.upstream.stubs import ARGUMENTS

PLAIN = b"data: hello world, this is an answer\n\n" * 20


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"<!doctype html><html><body>id: 7", "not_a_stream"),
        (b"\n\n<html>\ndata: {\n", "not_a_stream"),
        (b"Unauthorized", "not_a_stream"),
        (
            b"upstream connect error or disconnect/reset before headers. reset reason: connection failure",
            "not_a_stream",
        ),
        (b"error: no healthy upstream", "not_a_stream"),
        (b'{"detail":"Not authenticated"}', "not_a_stream"),
        (b'{"message":"no Route matched with those values"}', "not_a_stream"),
        (b'{"success":false,"result":null}', "not_a_stream"),
        (b'{"status":"ok"}', "not_a_stream"),
        (b"[]", "not_a_stream"),
        (b'"Unauthorized"', "not_a_stream"),
        (b'{"code":401,"msg":"invalid api key"}', "unauthorized"),
        (b'{"code":"401","message":"invalid api key"}', "unauthorized"),
        (b'{"statusCode":403,"message":"Forbidden"}', "forbidden"),
        (b'{"status":429,"title":"Too Many Requests"}', "rate_limited"),
        (b'{"object":"error","message":"no such model","type":"NotFoundError","code":404}', "model_not_found"),
        (b'{"errors":[{"code":"invalid_api_key","message":"wrong"}]}', "unauthorized"),
        (b'[{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED"}}]', "forbidden"),
        (b'data: {"code":401,"msg":"invalid api key"}\n\n', "unauthorized"),
        (b'event: message\ndata: {"detail":"Not authenticated"}\n\n', "not_a_stream"),
        (gzip.compress(PLAIN, mtime=0), "not_a_stream"),
        (zlib.compress(PLAIN), "not_a_stream"),
        (bytes.fromhex("28b52ffd2028410100") + b"data: hello world" * 2, "not_a_stream"),
        (bytes.fromhex("8b0f8064617461a5c3f1e0b7d2c49aa8b3") * 3, "not_a_stream"),
    ],
)
def test_what_is_no_stream_is_known_by_its_beginning(body: bytes, code: str) -> None:
    error = no_stream(body, "text/event-stream")
    assert error is not None
    assert error.code == code


@pytest.mark.parametrize("adapter", sorted(SPEECHES))
def test_no_stream_is_taken_for_something_else_wherever_it_is_cut(adapter: str) -> None:
    speech = SPEECHES[adapter]()
    for wire in (speech.answer("Hello"), speech.tool_answer(*ARGUMENTS), speech.comment * 3 + speech.answer("Hello")):
        assert [at for at in range(len(wire)) if no_stream(wire[:at], speech.content_type)] == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" \n",
        b"data:",
        b"data: [DONE]\n\n",
        b": keep-alive\n\n",
        b"\xef\xbb\xbfretry: 3000\n\n",
        b'{"code":401,"msg":"inv',
        b'{"choices":[{"message":{"content":"Hel',
        b'{"choices":[]}',
        b'{"id":"resp_1","object":"response","status":"queued"}',
        b'{"message":{"role":"assistant","content":""}}',
        b'[{"candidates":[]}]',
    ],
)
def test_what_may_have_broken_off_stays_a_stream(body: bytes) -> None:
    assert no_stream(body, "text/event-stream") is None


@pytest.mark.parametrize("head", [SSE, SSE.replace(b"event-stream", b"plain")])
async def test_the_log_is_told_what_came_and_not_the_key(head: bytes) -> None:
    async with serving(sends(head, f"<html>who sends {KEY}?".encode())) as server:
        error = await failure(chat_call(server.url))
    assert (error.code, error.retryable, KEY in error.detail) == ("not_a_stream", False, False)
    assert "<html>who sends ***?" in error.detail


async def test_bytes_that_are_no_text_are_told_in_short() -> None:
    async with serving(sends(SSE, gzip.compress(PLAIN))) as server:
        detail = (await failure(chat_call(server.url))).detail
    assert "gzip: 1f 8b" in detail
    assert detail.isprintable()


@pytest.mark.parametrize("size", [1, HEAD_BYTES, 100 * HEAD_BYTES])
async def test_a_page_of_any_size_in_any_pieces_is_no_stream(size: int) -> None:
    async with serving(sends(SSE, *(b"<p>" for _ in range(9)), b"x" * size)) as server:
        error = await failure(chat_call(server.url))
    assert (error.code, len(error.detail) <= 2000) == ("not_a_stream", True)


async def test_a_line_without_end_that_is_no_stream_is_told_as_such() -> None:
    async with serving(sends(SSE, b"<html>" + b"x" * 5000)) as server:
        limits = Limits(line_bytes=1000)
        call = HttpCall(server.url, {}, b"{}", OpenAIChat(limits), limits=limits)
        assert (await failure(call)).code == "not_a_stream"


async def test_what_was_read_before_makes_it_a_stream() -> None:
    text = b'data: {"choices":[{"delta":{"content":"A"}}]}\n\n'
    async with serving(sends(SSE, text, b"<html>")) as server:
        assert (await failure(chat_call(server.url))).code == "incomplete_stream"


async def test_a_body_that_says_it_is_empty_is_no_stream_and_one_that_broke_off_is() -> None:
    async with serving(answers("200 OK", Content_Type="text/event-stream")) as server:
        assert (await failure(chat_call(server.url))).code == "not_a_stream"
    for body in (SSE, CHUNKED + b"0\r\n\r\n"):
        async with serving(sends(body)) as server:
            assert (await failure(chat_call(server.url))).code == "incomplete_stream"


async def test_an_error_that_json_states_has_its_words() -> None:
    async with serving(sends(SSE, b'{"code":401,"msg":"invalid api key"}')) as server:
        error = await failure(chat_call(server.url))
    assert (error.code, error.said) == ("unauthorized", "invalid api key")
