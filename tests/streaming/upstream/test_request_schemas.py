"""Every body that a dialect builds, against what its provider publishes."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from streaming.errors import UpstreamError
from streaming.upstream import background, llamacpp
from streaming.upstream.dialects import DIALECTS, openai_chat_spec
from streaming.upstream.ports import AnswerSchema, ChatRequest, Image, Message, Tool
from tests.streaming.upstream.request_schemas import SCHEMAS

PIXEL = Image("image/png", b"\x89PNG\r\n\x1a\n")
PERSON = AnswerSchema("person", {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
WEATHER = Tool("get_weather", "Tell the weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
BARE_TOOL = Tool("now", "", {"type": "object", "properties": {}})
TALK = (Message("system", "Be brief."), Message("user", "Hi"), Message("assistant", "Hello"))
SEEING = (*TALK, Message("user", "What is this?", (PIXEL, PIXEL)))
ASKING = (*TALK, Message("user", "Bye"))
NAMES = sorted(SCHEMAS)
# Where the schema of a dialect leaves something out, the request for it is refused instead.
BLIND = {"openai_chat-deepseek", "llamacpp"}
WITHOUT_TOOLS = {"openai_chat-perplexity", "llamacpp"}
WITHOUT_SCHEMA = {"openai_chat-deepseek"}
PARAMS = {
    "temperature": st.floats(0, 2),
    "top_p": st.floats(0, 1),
    "max_tokens": st.integers(1, 10_000),
    "seed": st.integers(0, 2**31),
    "stop": st.lists(st.text(min_size=1), min_size=1, max_size=4),
    "presence_penalty": st.floats(-2, 2),
    "frequency_penalty": st.floats(-2, 2),
    "reasoning_effort": st.sampled_from(("none", "minimal", "low", "medium", "high", "xhigh")),
}


def builder(name: str) -> Callable[[ChatRequest], dict[str, Any]]:
    adapter, _, accent = name.partition("-")
    if adapter == "llamacpp":
        return lambda request: llamacpp.build_body(request, (1, 2))
    return openai_chat_spec(accent).build_body if accent else DIALECTS[adapter].build_body


def mistakes(name: str, body: dict[str, Any]) -> list[str]:
    """Name what the provider would refuse. The body goes through JSON, as it does on the wire."""
    found = Draft202012Validator(SCHEMAS[name]).iter_errors(json.loads(json.dumps(body)))
    return [f"{error.json_path}: {error.message[:300]}" for error in found]


@pytest.mark.parametrize("name", NAMES)
@given(params=st.fixed_dictionaries({}, optional=PARAMS))
def test_a_request_is_as_its_provider_publishes_it_or_refused(name: str, params: dict[str, Any]) -> None:
    with contextlib.suppress(UpstreamError):
        assert mistakes(name, builder(name)(ChatRequest("some-model", ASKING, params))) == []


@pytest.mark.parametrize("name", sorted(set(NAMES) - BLIND))
def test_images_are_sent_as_the_provider_publishes_it(name: str) -> None:
    body = builder(name)(ChatRequest("some-model", SEEING))
    assert mistakes(name, body) == []
    assert json.dumps(body).count(base64.b64encode(PIXEL.data).decode()) == 2


@pytest.mark.parametrize("name", sorted(set(NAMES) - BLIND))
def test_an_image_without_words_needs_no_empty_text(name: str) -> None:
    request = ChatRequest("some-model", (Message("user", "", (PIXEL,)),))
    assert mistakes(name, builder(name)(request)) == []


@pytest.mark.parametrize("name", sorted(set(NAMES) - WITHOUT_TOOLS))
def test_tools_are_sent_as_the_provider_publishes_it(name: str) -> None:
    body = builder(name)(ChatRequest("some-model", ASKING, tools=(WEATHER, BARE_TOOL)))
    assert mistakes(name, body) == []
    assert "get_weather" in json.dumps(body)


@pytest.mark.parametrize("name", sorted(set(NAMES) - WITHOUT_SCHEMA))
def test_a_schema_for_the_answer_is_sent_as_the_provider_publishes_it(name: str) -> None:
    body = builder(name)(ChatRequest("some-model", ASKING, answer_schema=PERSON))
    assert mistakes(name, body) == []
    assert "required" in json.dumps(body)


def test_a_response_in_the_background_is_sent_as_the_provider_publishes_it() -> None:
    body = background.build_body(ChatRequest("some-model", ASKING))
    assert mistakes("openai_responses", body) == []
    assert (body["background"], body["store"]) == (True, True)


def test_effort_and_schema_share_one_member_with_anthropic() -> None:
    request = ChatRequest("some-model", ASKING, {"reasoning_effort": "low"}, answer_schema=PERSON)
    assert sorted(builder("anthropic")(request)["output_config"]) == ["effort", "format"]


@pytest.mark.parametrize(
    ("names", "extra", "code"),
    [
        (BLIND, {"messages": SEEING}, "unsupported_images"),
        (WITHOUT_TOOLS, {"messages": ASKING, "tools": (WEATHER,)}, "unsupported_tools"),
        (WITHOUT_SCHEMA, {"messages": ASKING, "answer_schema": PERSON}, "unsupported_json_schema"),
        ({"cohere"}, {"messages": ASKING, "answer_schema": PERSON, "tools": (WEATHER,)}, "unsupported_json_schema"),
        (set(NAMES), {"messages": (Message("user", "", (Image("image/bmp", b"B"),)),)}, "unsupported_images"),
        (set(NAMES), {"messages": (Message("assistant", "", (PIXEL,)),)}, "unsupported_images"),
    ],
)
def test_what_a_dialect_cannot_express_is_refused_with_a_sentence(
    names: set[str], extra: dict[str, Any], code: str
) -> None:
    for name in names:
        with pytest.raises(UpstreamError) as caught:
            builder(name)(ChatRequest("some-model", **extra))
        assert (caught.value.code, caught.value.message[-1]) == (code, ".")
