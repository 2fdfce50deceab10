"""Whatever a service sends, a dialect ends in a finish or in an UpstreamError, and never otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.errors import UpstreamError
from streaming.upstream.anthropic import Anthropic
from streaming.upstream.bedrock import Bedrock
from streaming.upstream.bedrock_invoke import BedrockInvoke
from streaming.upstream.cohere import Cohere
from streaming.upstream.dialect import JsonDialect
from streaming.upstream.gemini import Gemini
from streaming.upstream.interactions import Interactions
from streaming.upstream.limits import Limits
from streaming.upstream.numbers import CERTAIN
from streaming.upstream.ollama import Ollama
from streaming.upstream.openai_chat import OpenAIChat
from streaming.upstream.responses import Responses
from tests.streaming.upstream import eventstream
from tests.streaming.upstream.recorded import MISSING, SHARED, Case, outcomes_differ, play, quirks

MAKERS: list[Callable[[Limits], JsonDialect]] = [
    Anthropic, Bedrock, BedrockInvoke, Cohere, Gemini, Interactions, Ollama, OpenAIChat, Responses,
]  # fmt: skip
WORDS = [
    "choices", "delta", "content", "finish_reason", "index", "tool_calls", "function", "name", "arguments", "id",
    "usage", "type", "content_block_start", "content_block_delta", "message_start", "message_delta", "message", "text",
    "error", "candidates", "parts", "functionCall", "partialArgs", "jsonPath", "$.a", "finishReason",
    "response.completed",
    "response", "output_index", "item", "response.output_item.added", "response.output_text.delta", "function_call",
    "done", "message-end", "tool-call-start", "content-delta", "step.delta", "event_type", "messageStop", "stopReason",
    "contentBlockDelta", "toolUse", "input", "stop", "prompt_tokens", "willContinue", "step", "step.start", "bytes",
]  # fmt: skip
word = st.sampled_from(WORDS) | st.text(max_size=3)
leaf = st.none() | st.booleans() | st.integers(-2, 3) | st.floats(allow_nan=False) | word
value = st.recursive(
    leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(word, inner, max_size=4), max_leaves=12
)


def sse(payload: Any) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
@settings(deadline=None)
@given(payloads=st.lists(value, max_size=4), kind=st.sampled_from(WORDS))
def test_any_json_ends_in_a_finish_or_an_error_of_ours(
    make: Callable[[Limits], JsonDialect], payloads: list[Any], kind: str
) -> None:
    for wire in (
        b"".join(map(sse, payloads)),
        b"".join(json.dumps(payload).encode() + b"\n" for payload in payloads),
        b"".join(eventstream.event(kind, payload) for payload in payloads),
    ):
        outcome = play(make(Limits()), [wire])
        assert (outcome.finish is None) == (outcome.error is not None)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
@settings(deadline=None)
@given(wire=st.binary(max_size=100))
def test_any_bytes_end_in_an_error_of_ours(make: Callable[[Limits], JsonDialect], wire: bytes) -> None:
    assert play(make(Limits()), [wire]).error is not None


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_json_that_is_nested_without_end_is_malformed(make: Callable[[Limits], JsonDialect]) -> None:
    deep = b'{"choices":' + b"[" * 200_000
    assert play(make(Limits()), [b"data: " + deep + b"\n\n", deep + b"\n"]).error is not None


def test_text_that_nobody_reads_is_not_kept_without_end() -> None:
    dialect = Anthropic(Limits())
    event = sse({"type": "patch", "text": "x" * 100_000})
    for _ in range(20):
        dialect.feed(event)
    with pytest.raises(UpstreamError) as caught:
        list(dialect.finish())
    assert (dialect.done, caught.value.code) == (True, "hole_in_answer")


@pytest.mark.parametrize("index", [lambda n: n, lambda n: n % 2])
def test_no_more_than_some_pieces_of_other_choices_are_held_back(index: Callable[[int], int]) -> None:
    dialect = OpenAIChat(Limits())
    told = 0
    for n in range(1000):
        chunks = dialect.feed(sse({"choices": [{"index": index(n), "delta": {"content": "x"}}]}))
        told += len(chunks)
        assert index(n) != n or n - told < 2 * CERTAIN
    assert told >= 500


@pytest.mark.skipif(not SHARED.is_dir(), reason=MISSING)
@pytest.mark.parametrize("case", quirks("openai_chat", "openai_responses"), ids=lambda case: case.id)
def test_comments_and_crlf_change_nothing(case: Case) -> None:
    make = OpenAIChat if case.dialect == "openai_chat" else Responses
    if b"\r" in case.wire or b"\n\n" not in case.wire or case.wire.startswith(b"\xef\xbb\xbf"):
        pytest.skip("it has line ends, or a beginning, of its own")
    commented = b": ping\n\n" + case.wire.replace(b"\n\n", b"\n: ping\n\n: ping\n")
    crlf = case.wire.replace(b"\n", b"\r\n")
    assert outcomes_differ(lambda: make(Limits()), case.wire, [[commented], [crlf]]) == []
