"""What each dialect sends: body, address, headers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streaming.errors import UpstreamError
from streaming.upstream import anthropic, bedrock, bedrock_invoke, cohere, gemini, interactions, ollama, responses
from streaming.upstream.dialects import DIALECTS, openai_chat_spec
from streaming.upstream.ports import ChatRequest, Message
from streaming.upstream.spec import HttpUpstream
from tests.streaming.upstream.calls import failure
from tests.streaming.upstream.server import answers, serving

MESSAGES = (
    Message("system", "Be brief."),
    Message("user", "Hi"),
    Message("assistant", "Hello"),
    Message("user", "Bye"),
)
TURNS = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "Bye"},
]


def ask(model: str = "some-model", **params: Any) -> ChatRequest:
    return ChatRequest(model, MESSAGES, params)


def test_anthropic_takes_the_system_prompt_apart_and_demands_a_limit() -> None:
    assert anthropic.build_body(ask(stop=["x"])) == {
        "model": "some-model", "messages": TURNS, "system": "Be brief.", "stream": True, "max_tokens": 8192,
        "stop_sequences": ["x"],
    }  # fmt: skip


def test_anthropic_thinks_adaptively_at_an_effort() -> None:
    body = anthropic.build_body(ask(reasoning_effort="high", max_tokens=100))
    assert (body["thinking"], body["output_config"], body["max_tokens"]) == (
        {"type": "adaptive", "display": "summarized"},
        {"effort": "high"},
        100,
    )


def test_responses_are_not_stored_by_the_service() -> None:
    assert responses.build_body(ask(max_tokens=9, reasoning_effort="low")) == {
        "model": "some-model", "input": [{"role": "system", "content": "Be brief."}, *TURNS], "stream": True,
        "store": False, "max_output_tokens": 9, "reasoning": {"effort": "low", "summary": "auto"},
    }  # fmt: skip


def test_gemini_has_roles_and_parts_of_its_own() -> None:
    assert gemini.build_body(ask(top_p=0.5)) == {
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [{"text": "Hello"}]},
            {"role": "user", "parts": [{"text": "Bye"}]},
        ],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"topP": 0.5},
    }


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("gemini-2.5-flash", {"includeThoughts": True, "thinkingBudget": 1024}),
        ("gemini-3-pro", {"includeThoughts": True, "thinkingLevel": "low"}),
    ],
)
def test_gemini_counts_effort_in_tokens_before_version_3(model: str, thinking: dict[str, Any]) -> None:
    body = gemini.build_body(ask(model, reasoning_effort="low"))
    assert body["generationConfig"]["thinkingConfig"] == thinking


def test_interactions_have_a_configuration_of_their_own() -> None:
    body = interactions.build_body(ask(max_tokens=5))
    assert (body["generation_config"], body["input"][1]) == (
        {"max_output_tokens": 5},
        {"type": "model_output", "content": [{"type": "text", "text": "Hello"}]},
    )


def test_ollama_takes_parameters_as_options() -> None:
    assert ollama.build_body(ask(max_tokens=9, reasoning_effort="none")) == {
        "model": "some-model", "messages": [{"role": "system", "content": "Be brief."}, *TURNS], "stream": True,
        "think": False, "options": {"num_predict": 9},
    }  # fmt: skip


def test_cohere_calls_top_p_p() -> None:
    assert cohere.build_body(ask(top_p=0.5))["p"] == 0.5


def test_bedrock_takes_content_as_blocks() -> None:
    assert bedrock.build_body(ask(max_tokens=9)) == {
        "messages": [{"role": turn["role"], "content": [{"text": turn["content"]}]} for turn in TURNS],
        "system": [{"text": "Be brief."}],
        "inferenceConfig": {"maxTokens": 9},
    }


def test_bedrock_invoke_names_the_version_in_the_body() -> None:
    body = bedrock_invoke.build_body(ask())
    assert (body["anthropic_version"], "model" in body, "stream" in body) == ("bedrock-2023-05-31", False, False)


@pytest.mark.parametrize(
    ("adapter", "params"),
    [
        ("anthropic", {"seed": 1}),
        ("anthropic", {"temperature": 1.5}),
        ("anthropic", {"reasoning_effort": "minimal"}),
        ("openai_responses", {"stop": ["x"]}),
        ("gemini", {"top_k": 3}),
        ("gemini_interactions", {"presence_penalty": 0.5}),
        ("ollama", {"reasoning_effort": "xhigh"}),
        ("cohere", {"presence_penalty": -0.5}),
        ("bedrock", {"seed": 1}),
    ],
)
def test_what_a_dialect_cannot_express_is_refused_before_the_call(adapter: str, params: dict[str, Any]) -> None:
    upstream = HttpUpstream(DIALECTS[adapter], "http://127.0.0.1:9/v1")
    with pytest.raises(UpstreamError) as caught:
        upstream.call(ask(**params))
    assert caught.value.code == "unsupported_parameter"


@pytest.mark.parametrize(
    ("adapter", "path", "key_header"),
    [
        ("openai_chat", "/v1/chat/completions", "Authorization: Bearer the-key"),
        ("azure", "/v1/openai/deployments/m%3A1%2Fx/chat/completions?api-version=2024-10-21", "api-key: the-key"),
        ("openai_responses", "/v1/responses", "Authorization: Bearer the-key"),
        ("anthropic", "/v1/messages", "x-api-key: the-key"),
        ("gemini", "/v1/models/m%3A1%2Fx:streamGenerateContent?alt=sse", "x-goog-api-key: the-key"),
        ("gemini_interactions", "/v1/interactions?alt=sse", "x-goog-api-key: the-key"),
        ("ollama", "/v1/api/chat", "Authorization: Bearer the-key"),
        ("cohere", "/v1/chat", "Authorization: Bearer the-key"),
        ("bedrock", "/v1/model/m%3A1%2Fx/converse-stream", "Authorization: Bearer the-key"),
        ("bedrock_invoke", "/v1/model/m%3A1%2Fx/invoke-with-response-stream", "Authorization: Bearer the-key"),
    ],
)
async def test_each_dialect_is_called_at_its_path_with_its_key(adapter: str, path: str, key_header: str) -> None:
    async with serving(answers("500 No")) as server:
        await failure(HttpUpstream(DIALECTS[adapter], server.url, "the-key").call(ask("m:1/x")))
    lines = server.requests[0].decode().split("\r\n")
    assert (lines[0], key_header in lines) == (f"POST {path} HTTP/1.1", True)


async def test_without_a_key_none_is_sent_and_own_headers_are() -> None:
    async with serving(answers("500 No")) as server:
        upstream = HttpUpstream(openai_chat_spec(), f"{server.url}/", headers={"X-Title": "Sidestream"})
        await failure(upstream.call(ask()))
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert (b"uthorization" in head, b"X-Title: Sidestream" in head, json.loads(body)["model"]) == (
        False,
        True,
        "some-model",
    )


async def test_a_bedrock_call_is_signed_with_access_keys() -> None:
    async with serving(answers("500 No")) as server:
        await failure(HttpUpstream(DIALECTS["bedrock"], server.url, "AKIAEXAMPLE:secret:token").call(ask()))
    assert b"Authorization: AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/" in server.requests[0]
    assert b"secret" not in server.requests[0]
