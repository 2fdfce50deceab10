"""
A good stream in which any values became null, empty or zero is told whole or ends as an error, in every dialect.

Its words occur once each. Whatever is left of them in what was sent has to be in what is told, if that is told as
whole; and a call that was completed has to be one that was made.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.streaming.upstream.recorded import Outcome, play
from tests.streaming.upstream.sent import opened, sent

WORDS = ("amber", "birch", "cedar", "dune", "paris", "oslo")
ASKED = {"look": "paris", "find": "oslo"}
USED = {"prompt_tokens": 3, "completion_tokens": 5}


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
    return {"object": "chat.completion.chunk", "choices": [choice], "usage": USED if finish else None}


def chat_call(index: int, call: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    made = {"index": index, "id": call, "type": "function", "function": {"name": name, "arguments": arguments}}
    return chunk(tool_calls=[made])


def block(index: int, **members: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": members}


def piece(index: int, **members: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": members}


def part(finish: str | None = None, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0, "finishReason": finish}]}


def step(kind: str, index: int, **members: Any) -> dict[str, Any]:
    return {"event_type": kind, "index": index, ("step" if kind == "step.start" else "delta"): members}


def cohere(kind: str, index: int | None = None, **message: Any) -> dict[str, Any]:
    return {"type": kind, "index": index, "delta": {"message": message}}


def cohere_call(call: str, name: str) -> dict[str, Any]:
    return {"id": call, "type": "function", "function": {"name": name, "arguments": ""}}


def bedrock(index: int, **delta: Any) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}


def bedrock_call(index: int, call: str, name: str) -> dict[str, Any]:
    tool = {"toolUseId": call, "name": name}
    return {"contentBlockStart": {"contentBlockIndex": index, "start": {"toolUse": tool}}}


STREAMS: dict[str, list[Any]] = {
    "openai_chat": [
        chunk(content="", reasoning_content="amber "), chunk(reasoning_content="birch"),
        chunk(content="cedar "), chunk(content=[{"type": "text", "text": "dune"}]),
        chat_call(0, "a", "look", ""), chat_call(0, None, None, '{"city":'), chat_call(0, None, None, '"paris"}'),
        chat_call(1, "b", "find", ""), chat_call(1, None, None, '{"city":"oslo"}'), chunk("tool_calls"), "[DONE]",
    ],
    "anthropic": [
        {"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 3}}},
        block(0, type="thinking", thinking="amber "), piece(0, type="thinking_delta", thinking="birch"),
        block(1, type="text", text=""), piece(1, type="text_delta", text="cedar "),
        piece(1, type="text_delta", text="dune"), {"type": "content_block_stop", "index": 1},
        block(2, type="tool_use", id="a", name="look", input={}),
        piece(2, type="input_json_delta", partial_json='{"city":'),
        piece(2, type="input_json_delta", partial_json='"paris"}'),
        block(3, type="tool_use", id="b", name="find", input={}),
        piece(3, type="input_json_delta", partial_json='{"city":"oslo"}'),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ],
    "gemini": [
        part(None, {"text": "amber ", "thought": True}, {"text": "birch", "thought": True}),
        part(None, {"text": "cedar "}), part(None, {"text": "dune"}),
        part(None, {"functionCall": {"name": "look", "args": {"city": "paris"}}}),
        part("STOP", {"functionCall": {"name": "find", "args": {"city": "oslo"}}}),
    ],
    "gemini_interactions": [
        step("step.start", 0, type="thought"),
        step("step.delta", 0, type="thought_summary", content={"type": "text", "text": "amber "}),
        step("step.delta", 0, type="thought_summary", content={"type": "text", "text": "birch"}),
        step("step.start", 1, type="model_output"), step("step.delta", 1, type="text", text="cedar "),
        step("step.delta", 1, type="text", text="dune"),
        step("step.start", 2, type="function_call", id="a", name="look", arguments={}),
        step("step.delta", 2, type="arguments_delta", arguments='{"city":"paris"}'),
        step("step.start", 3, type="function_call", id="b", name="find", arguments={"city": "oslo"}),
        {"event_type": "interaction.completed", "interaction": {"id": "i", "status": "requires_action"}},
    ],
    "ollama": [
        {"message": {"role": "assistant", "thinking": "amber "}, "done": False},
        {"message": {"role": "assistant", "thinking": "birch"}, "done": False},
        {"message": {"role": "assistant", "content": "cedar "}, "done": False}, {"response": "dune", "done": False},
        {"message": {"tool_calls": [{"function": {"name": "look", "arguments": {"city": "paris"}}}]}, "done": False},
        {"message": {"tool_calls": [{"function": {"name": "find", "arguments": {"city": "oslo"}}}]}, "done": False},
        {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop", "eval_count": 5},
    ],
    "cohere": [
        cohere("tool-plan-delta", tool_plan="amber "),
        cohere("content-delta", 0, content={"type": "thinking", "thinking": "birch"}),
        cohere("content-start", 1, content={"type": "text", "text": "cedar "}),
        cohere("content-delta", 1, content={"text": "dune"}),
        cohere("tool-call-start", 0, tool_calls=cohere_call("a", "look")),
        cohere("tool-call-delta", 0, tool_calls={"function": {"arguments": '{"city":"paris"}'}}),
        cohere("tool-call-start", 1, tool_calls=cohere_call("b", "find")),
        cohere("tool-call-delta", 1, tool_calls={"function": {"arguments": '{"city":"oslo"}'}}),
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": {"tokens": {"output_tokens": 5}}}},
    ],
    "bedrock": [
        {"messageStart": {"role": "assistant"}}, bedrock(0, reasoningContent={"text": "amber "}),
        bedrock(0, reasoningContent={"text": "birch"}), bedrock(1, text="cedar "), bedrock(1, text="dune"),
        bedrock_call(2, "a", "look"), bedrock(2, toolUse={"input": '{"city":'}),
        bedrock(2, toolUse={"input": '"paris"}'}),
        bedrock_call(3, "b", "find"), bedrock(3, toolUse={"input": '{"city":"oslo"}'}),
        {"messageStop": {"stopReason": "tool_use"}}, {"metadata": {"usage": {"inputTokens": 3, "outputTokens": 5}}},
    ],
    "llamacpp": [
        {"content": "cedar ", "stop": False}, {"content": "dune", "stop": False},
        {"content": "", "stop": True, "stop_type": "eos", "tokens_predicted": 5},
    ],
}  # fmt: skip


def places(value: Any, *path: str | int) -> Iterator[tuple[str | int, ...]]:
    """Give the path of each member, at every depth."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in members:
        yield (*path, name)
        yield from places(member, *path, name)


def put(stream: list[Any], path: tuple[str | int, ...], value: Any) -> None:
    """Put a value at a path, if that is still there; where a number stands, none but null, since zero is another."""
    *way, last = path
    holder: Any = stream
    for name in way:
        holder = holder[name] if isinstance(holder, dict | list) and holder else None
    if isinstance(holder, dict | list) and holder:
        holder[last] = None if isinstance(holder[last], int) else value  # type: ignore[index,call-overload]


def changeable(dialect: str) -> list[tuple[str | int, ...]]:
    # The events themselves stay: without them, there is nothing to be told of them.
    depth = 2 if dialect == "bedrock" else 1
    return [path for path in places(STREAMS[dialect]) if len(path) > depth]


def read(dialect: str, stream: list[Any]) -> Outcome:
    return play(opened(dialect), [b"".join(sent(dialect, payload) for payload in stream)])


def told(outcome: Outcome) -> str:
    return " ".join([outcome.text, outcome.reasoning, *(tool["arguments"] for tool in outcome.tools)])


@pytest.mark.parametrize("dialect", STREAMS)
def test_the_stream_itself_is_read_whole(dialect: str) -> None:
    outcome = read(dialect, STREAMS[dialect])
    assert (outcome.error, {word for word in WORDS if word in json.dumps(STREAMS[dialect])}) == (
        None, {word for word in WORDS if word in told(outcome)},
    )  # fmt: skip


@pytest.mark.parametrize("dialect", STREAMS)
@given(data=st.data())
def test_what_is_left_of_a_stream_is_told_or_it_ends_as_an_error(dialect: str, data: st.DataObject) -> None:
    stream = copy.deepcopy(STREAMS[dialect])
    for path in data.draw(st.lists(st.sampled_from(changeable(dialect)), min_size=1, max_size=2)):
        put(stream, path, data.draw(st.sampled_from([None, {}, [], 0, ""])))
    outcome = read(dialect, stream)
    left = json.dumps(stream)
    lost = [word for word in WORDS if word in left and word not in told(outcome)]
    assert outcome.error or not lost
    made = {tool["name"]: tool["arguments"] for tool in outcome.tools if tool["complete"]}
    assert not [name for name, arguments in made.items() if ASKED[name] in left and ASKED[name] not in arguments]
