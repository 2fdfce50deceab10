from __future__ import annotations

from typing import Any

import pytest

from streaming.errors import UpstreamError
from streaming.upstream.openai_chat import ACCENTS, build_body
from streaming.upstream.ports import ChatRequest, Message

MESSAGES = (
    Message("system", "Be brief."),
    Message("user", "Hi"),
    Message("assistant", "Hello"),
    Message("user", "Bye"),
)


def request(**params: Any) -> ChatRequest:
    return ChatRequest("some-model", MESSAGES, params)


def test_a_chat_completion_is_asked_for_as_a_stream_with_usage() -> None:
    assert build_body(request(temperature=0)) == {
        "model": "some-model",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello"},
            {"role": "user", "content": "Bye"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0,
    }


def test_every_parameter_of_ours_has_a_field() -> None:
    params = {
        "temperature": 0.5, "top_p": 1, "max_tokens": 10, "seed": 1, "stop": ("\n",), "presence_penalty": 0.1,
        "frequency_penalty": 0.1, "reasoning_effort": "low",
    }  # fmt: skip
    body = build_body(request(**params))
    assert {name: body[name] for name in params} == {**params, "stop": ["\n"]}


@pytest.mark.parametrize(
    ("accent", "field"),
    [
        ("", "max_tokens"),
        ("openai", "max_completion_tokens"),
        ("groq", "max_completion_tokens"),
        ("mistral", "max_tokens"),
    ],
)
def test_a_relative_has_its_own_name_for_a_parameter(accent: str, field: str) -> None:
    assert build_body(request(max_tokens=5), ACCENTS[accent])[field] == 5


def test_a_parameter_that_is_not_set_is_not_sent() -> None:
    assert "temperature" not in build_body(request(temperature=None))


@pytest.mark.parametrize(
    "params",
    [
        {"top_k": 1}, {"temperature": "hot"}, {"temperature": 3}, {"temperature": True}, {"top_p": -0.1},
        {"max_tokens": 0}, {"max_tokens": 1.5}, {"seed": -1}, {"stop": "x"}, {"stop": [""]},
        {"reasoning_effort": "huge"},
    ],
    ids=str,
)  # fmt: skip
def test_a_parameter_that_is_unknown_or_out_of_range_is_refused_before_the_call(params: dict[str, Any]) -> None:
    with pytest.raises(UpstreamError) as caught:
        build_body(request(**params))
    assert caught.value.code == "unsupported_parameter"
    assert next(iter(params)) in caught.value.message


def test_a_relative_refuses_what_it_has_no_field_for() -> None:
    with pytest.raises(UpstreamError):
        build_body(request(reasoning_effort="low"), ACCENTS["mistral"])
