"""Whatever strings a service sends, in whatever place: what leaves an adapter can be sent, stored and shown."""

from __future__ import annotations

import base64
import copy
import dataclasses
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.errors import UpstreamError
from streaming.upstream.dialect import JsonDialect
from streaming.upstream.dialects import DIALECTS
from streaming.upstream.faults import fault
from streaming.upstream.framing import ServerSentEvent
from streaming.upstream.http import Dialect
from streaming.upstream.http_faults import from_response
from streaming.upstream.limits import Limits
from streaming.upstream.llamacpp import LlamaCpp
from streaming.upstream.ports import Chunk, FinishChunk, ToolChunk, ToolCompleteChunk
from streaming.upstream.tools import ToolCalls
from tests.streaming.upstream import eventstream
from tests.streaming.upstream.speech import SPEECHES, sse
from tests.streaming.upstream.stubs import ARGUMENTS

ADAPTERS = [*sorted(SPEECHES), "llamacpp"]
# Halves of a pair alone, in the wrong order and whole; NUL; a pair and an escape that are to stay.
NASTY = ["\ud800", "\udc00", "\udf0d\ud83c", "\ud83c", "\udf0d", "\0", "a\0b\ud800c", "🌍", "\\ud800", "\\u0000"]
poison = st.tuples(st.integers(0, 10_000), st.sampled_from(NASTY), st.sampled_from(["replace", "append", "rename"]))
# What an answer may hold beyond what SPEECHES say.
MORE: dict[str, list[ServerSentEvent]] = {
    "openai_chat": [
        ServerSentEvent("message", json.dumps({"choices": [{"delta": delta}]}))
        for delta in (
            {"reasoning_content": "Hm"}, {"refusal": "No"}, {"function_call": {"name": "f", "arguments": "{}"}},
            {"content": [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": [{"text": "b"}]}]},
            {"tool_calls": [{"id": "x", "index": 5, "function": {"name": "f", "arguments": {"a": "b"}}}]},
        )
    ] + [ServerSentEvent("message", '{"choices":[{"text":"a","token_ids":["7"]}]}')],
    "openai_responses": [
        ServerSentEvent("message", json.dumps(payload))
        for payload in (
            {"type": "response.refusal.delta", "delta": "No"},
            {"type": "response.reasoning_text.delta", "delta": "Hm"},
            {"type": "response.output_item.added", "output_index": 4,
             "item": {"type": "custom_tool_call", "call_id": "c", "name": "f"}},
            {"type": "response.custom_tool_call_input.delta", "output_index": 4, "delta": "a"},
            {"type": "response.custom_tool_call_input.done", "output_index": 4, "input": "a"},
        )
    ],
    "anthropic": [
        ServerSentEvent("message", json.dumps(payload))
        for payload in (
            {"type": "content_block_delta", "index": 3, "delta": {"type": "thinking_delta", "thinking": "Hm"}},
            {"type": "content_block_start", "index": 4,
             "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {"a": "b"}}},
        )
    ],
    "gemini": [
        ServerSentEvent("message", json.dumps({"candidates": [{"content": {"parts": [part]}}]}))
        for part in (
            {"thought": True, "text": "Hm"},
            {"functionCall": {"name": "f", "willContinue": True}},
            {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "b"}], "willContinue": True}},
        )
    ],
    "ollama": [ServerSentEvent("message", '{"message":{"thinking":"Hm"}}')],
    "cohere": [ServerSentEvent("message", '{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"Hm"}}}')],
    "bedrock": [ServerSentEvent("contentBlockDelta", '{"delta":{"reasoningContent":{"text":"Hm"}}}')],
    "bedrock_invoke": [ServerSentEvent("message", '{"outputText":"a"}')],
    "llamacpp": [
        ServerSentEvent("message", json.dumps({"content": "a", "tokens": [1, "2"], "stop": False})),
        ServerSentEvent("message", json.dumps({"content": "", "stop": True, "stop_type": "eos"})),
    ],
}  # fmt: skip


def opened(adapter: str) -> JsonDialect:
    dialect: Any = LlamaCpp(Limits()) if adapter == "llamacpp" else DIALECTS[adapter].open(Limits())
    return dialect  # type: ignore[no-any-return]


def documents(adapter: str, *, fails: bool) -> list[ServerSentEvent]:
    """Give all that an answer of this service may consist of, as its framer gives it."""
    more = MORE.get(adapter, [])
    if adapter not in SPEECHES:
        return more
    speech = SPEECHES[adapter]()
    framer = opened(adapter).framer
    begin = [*framer.feed(speech.begin() + speech.text("Hi") + speech.tool(*ARGUMENTS))]
    end = speech.error() if fails else speech.finish(tool=True) + speech.end
    return [*begin, *more, *framer.feed(end), *framer.finish()]


def written(adapter: str, event: ServerSentEvent, payload: Any) -> bytes:
    """Put a document back into the frame of its service."""
    if event.error_field is not None:
        return eventstream.exception(event.event, payload)
    kind = SPEECHES[adapter].content_type if adapter in SPEECHES else "text/event-stream"
    if adapter == "bedrock_invoke":
        return eventstream.event("chunk", {"bytes": base64.b64encode(json.dumps(payload).encode()).decode()})
    if kind.endswith("eventstream"):
        return eventstream.event(event.event, payload)
    return json.dumps(payload).encode() + b"\n" if kind.endswith("ndjson") else sse(payload, event.event)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Give every place in a document that may hold a string: its holder, and its key there."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield value, key
        yield from places(child)


def poisoned(payloads: list[Any], poisons: list[tuple[int, str, str]]) -> list[Any]:
    """Change a few strings: make them another, add to them, or rename what holds them."""
    payloads = copy.deepcopy(payloads)
    for place, nasty, how in poisons:
        found = list(places(payloads))
        holder, key = found[place % len(found)]
        if how == "append" and isinstance(holder[key], str):
            holder[key] += nasty
        elif how == "rename" and isinstance(holder, dict):
            holder[key + nasty] = holder.pop(key)
        else:
            holder[key] = nasty
    return payloads


def heard(dialect: Dialect, wire: bytes) -> tuple[list[Chunk], UpstreamError | None]:
    chunks: list[Chunk] = []
    try:
        chunks += dialect.feed(wire)
        for chunk in dialect.finish():
            chunks.append(chunk)
    except UpstreamError as error:
        return chunks, error
    return chunks, None


def check_text(text: str) -> None:
    text.encode()
    assert "\0" not in text


def check_chunk(chunk: Chunk) -> None:
    """Every value is a valid text, a number that JSON and the database know, or ids of tokens."""
    for field in dataclasses.fields(chunk):
        value = getattr(chunk, field.name)
        for one in value if isinstance(value, tuple) else [value]:
            if isinstance(one, str) and not isinstance(value, tuple):
                check_text(one)
            else:
                assert one is None or (type(one) is int and abs(one) < 2**63), f"{field.name} of {chunk}"


def check_error(error: UpstreamError) -> None:
    for text in (error.code, error.message, error.detail, str(error)):
        check_text(text)


@pytest.mark.parametrize("adapter", ADAPTERS)
@settings(deadline=None, max_examples=200)
@given(poisons=st.lists(poison, max_size=4), fails=st.booleans())
def test_strings_of_any_kind_in_any_place_leave_only_valid_text(
    adapter: str, poisons: list[tuple[int, str, str]], fails: bool
) -> None:
    events = [event for event in documents(adapter, fails=fails) if event.data != "[DONE]"]
    payloads = poisoned([json.loads(event.data) for event in events], poisons)
    wire = b"".join(written(adapter, event, payload) for event, payload in zip(events, payloads, strict=True))
    chunks, error = heard(opened(adapter), wire)
    for chunk in chunks:
        check_chunk(chunk)
    if error:
        check_error(error)


@settings(deadline=None)
@given(st.lists(st.sampled_from(NASTY), max_size=4), st.sampled_from([400, 401, 429, 500]))
def test_an_error_page_of_any_strings_gives_only_valid_text(words: list[str], status: int) -> None:
    said = "".join(words)
    body = json.dumps({"error": {"code": said, "type": said, "message": said}}).encode()
    check_error(from_response(status, {"content-type": said}, body))
    check_error(fault("unsupported_parameter", parameter=said, detail=said))


# What goes wrong beside strings


# Deep enough that Python cannot print it, and not so deep that it could not be read.
NESTED = "[" * 990 + "]" * 990
MISSHAPEN = {
    "endless usage": '{"choices":[],"usage":{"prompt_tokens":1e999}}',
    "large usage": f'{{"choices":[],"usage":{{"prompt_tokens":{2**70}}}}}',
    "nested error": f'{{"error":{NESTED}}}',
}


@pytest.mark.parametrize("payload", MISSHAPEN.values(), ids=MISSHAPEN.keys())
def test_values_that_nobody_expects_end_no_worker(payload: str) -> None:
    chunks, _ = heard(opened("openai_chat"), f"data: {payload}\n\ndata: [DONE]\n\n".encode())
    for chunk in chunks:
        check_chunk(chunk)


def test_a_finish_that_is_no_word_is_an_unknown_one() -> None:
    delta = {"type": "message_delta", "delta": {"stop_reason": {"a": 1}}}
    chunks, _ = heard(opened("anthropic"), sse(delta) + sse({"type": "message_stop"}))
    assert chunks == [FinishChunk("unknown", "{'a': 1}")]


def test_a_final_event_whose_error_is_misshapen_ends_as_an_error_of_ours() -> None:
    failed = f'{{"type":"response.failed","response":{{"error":{NESTED}}}}}'
    _, error = heard(opened("openai_responses"), f"data: {failed}\n\n".encode())
    assert error is not None


@pytest.mark.parametrize("body", ["[" * 60_000, json.dumps({"error": {"code": "9" * 5000}})], ids=["nested", "number"])
def test_an_error_page_that_makes_no_sense_says_what_its_status_says(body: str) -> None:
    assert from_response(400, {}, body.encode()).code == "bad_request"


def test_the_id_of_a_response_can_stand_in_an_address() -> None:
    dialect: Any = opened("openai_responses")
    dialect.feed(sse({"type": "response.created", "response": {"id": "r/\ud800"}}))
    assert quote(dialect.response, safe="") == "r%2F%EF%BF%BD"


# Tool calls


def called(*calls: tuple[Any, int, Any, str]) -> tuple[list[ToolChunk], list[ToolCompleteChunk]]:
    """Take calls piece by piece; give what was shown of them, and what was complete."""
    tools = ToolCalls()
    pieces = [
        tools.add(id=identity, index=index, name=name, arguments=arguments)
        for identity, index, name, arguments in calls
    ]
    return [piece for piece in pieces if piece], tools.close_all(cut=False)


def test_a_tool_name_and_id_become_valid() -> None:
    shown, complete = called(("c\ud800", 0, "f\0", "{}"))
    assert (shown, complete) == (
        [ToolChunk("c\ufffd", "{}", "f\ufffd")],
        [ToolCompleteChunk("c\ufffd", "f\ufffd", "{}")],
    )


def test_ids_that_differ_only_in_what_is_replaced_stay_two_calls() -> None:
    _, complete = called(("\ud800", 0, "f", '{"a":1}'), ("\ud801", 1, "f", '{"a":2}'))
    assert [chunk.arguments for chunk in complete] == ['{"a":1}', '{"a":2}']
    assert len({chunk.call for chunk in complete}) == 2


def test_a_name_that_is_repeated_with_a_lone_surrogate_is_the_same_call() -> None:
    _, complete = called(("c", 0, "f\ud800", '{"a"'), ("c", 1, "f\ud800", ":1}"))
    assert [chunk.arguments for chunk in complete] == ['{"a":1}']


def test_every_call_has_a_name_of_its_own_whatever_ids_the_service_chose() -> None:
    _, complete = called(("x_3", 0, "f", "{}"), ("x", 1, "g", "{}"), ("x", 2, "h", "{}"))
    assert [chunk.call for chunk in complete] == ["x_3", "x", "x_4"]


def test_an_id_that_is_a_number_is_told_as_text() -> None:
    assert called((7, 0, "f", "{}"))[1] == [ToolCompleteChunk("7", "f", "{}")]


def test_an_endless_id_is_not_told_with_every_piece() -> None:
    shown, _ = called(("x" * 1000, 0, "f", "{"), ("x" * 1000, 0, None, "}"))
    assert shown == [ToolChunk("call_1", "{", "f"), ToolChunk("call_1", "}")]


def test_an_escape_inside_arguments_stays_as_it_is() -> None:
    arguments = '{"a": "\\u0000 \\ud800"}'
    assert called(("c", 0, "f", arguments))[1] == [ToolCompleteChunk("c", "f", arguments)]
