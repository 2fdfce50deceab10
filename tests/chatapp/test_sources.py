"""What providers and local servers list, read as models of ours."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from chatapp.modelconfig import ADAPTERS, Price
from chatapp.sources import SOURCES, Source, active
from streaming.upstream.openai_chat import ACCENTS

TODAY = date(2026, 11, 29)
BY_ID = {source.id: source for source in SOURCES}


def names(source: str, *rows: Any, **envelope: Any) -> list[str]:
    listed = {BY_ID[source].rows: list(rows), **envelope}
    return [config.model for config in BY_ID[source].models(listed, TODAY)]


@pytest.mark.parametrize(
    ("source", "chat", "other"),
    [
        ("openai", {"id": "gpt-5"}, {"id": "text-embedding-3-small"}),
        ("anthropic", {"id": "claude-x", "display_name": "Claude X"}, {"display_name": "no id"}),
        (
            "gemini",
            {"name": "models/gemini-x", "supportedGenerationMethods": ["generateContent"]},
            {"name": "models/embedder", "supportedGenerationMethods": ["embedContent"]},
        ),
        (
            "mistral",
            {"id": "mistral-x", "capabilities": {"completion_chat": True}},
            {"id": "mistral-embed", "capabilities": {"completion_chat": False}},
        ),
        ("groq", {"id": "llama", "active": True}, {"id": "old", "active": False}),
        (
            "openrouter",
            {"id": "a/b", "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]}},
            {"id": "a/draws", "architecture": {"input_modalities": ["text"], "output_modalities": ["image"]}},
        ),
        ("together", {"id": "a/b", "type": "chat"}, {"id": "a/c", "type": "embedding"}),
        ("cohere", {"name": "command-x", "endpoints": ["chat"]}, {"name": "embed-x", "endpoints": ["embed"]}),
        ("ollama", {"name": "llama3:8b"}, {"name": "nomic-embed-text"}),
        ("llamacpp", {"id": "model.gguf", "owned_by": "llamacpp"}, {"id": "other", "owned_by": "localai"}),
        ("vllm", {"id": "qwen", "max_model_len": 4096}, {"id": 3}),
    ],
)
def test_models_to_chat_with_are_told_from_others(source: str, chat: dict[str, Any], other: dict[str, Any]) -> None:
    (model,) = names(source, chat, other)
    assert model in (chat.get("id"), chat.get("name", "").removeprefix("models/"))


@pytest.mark.parametrize("listed", [None, 3, [], {}, {"data": None}, {"data": [None, 3, "x", {}, []]}, "text"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.id)
def test_a_list_of_an_unexpected_shape_holds_no_models(source: Source, listed: Any) -> None:
    assert source.models(listed, TODAY) == []


def test_a_list_may_be_without_an_envelope() -> None:
    assert [config.id for config in BY_ID["together"].models([{"id": "a/b", "type": "chat"}], TODAY)] == [
        "together:a/b"
    ]


def openrouter_price(**pricing: str) -> Price | None:
    text = {"input_modalities": ["text"], "output_modalities": ["text"]}
    (config,) = BY_ID["openrouter"].models({"data": [{"id": "a", "architecture": text, "pricing": pricing}]}, TODAY)
    return config.price


def test_a_price_is_for_a_million_tokens_and_of_today() -> None:
    price = openrouter_price(prompt="0.0000025", completion="0.00001", input_cache_read="0.00000125")
    assert price == Price(2.5, 10.0, "USD", TODAY, 1.25, "https://openrouter.ai/api/v1/models")


@pytest.mark.parametrize("pricing", [{}, {"prompt": "-1", "completion": "-1"}])
def test_a_price_that_depends_is_none(pricing: dict[str, str]) -> None:
    assert openrouter_price(**pricing) is None


def test_what_a_list_says_of_a_model_is_kept() -> None:
    row = {
        "id": "m", "max_context_length": 32_000,
        "capabilities": {"completion_chat": True, "function_calling": True, "vision": True},
    }  # fmt: skip
    (config,) = BY_ID["mistral"].models({"data": [row]}, TODAY)
    assert (config.context_tokens, config.capabilities) == (32_000, ("tools", "images"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.id)
def test_every_source_names_an_adapter_and_an_accent_that_exist(source: Source) -> None:
    assert (source.adapter in ADAPTERS, source.accent in ACCENTS) == (True, True)


def test_only_providers_whose_key_is_set_are_asked() -> None:
    asked = [source.id for source in active(SOURCES, {"GROQ_API_KEY": "x", "XAI_API_KEY": " "}) if source.key_env]
    assert asked == ["groq"]


def test_our_own_port_is_no_model_server() -> None:
    assert "vllm" not in [source.id for source in active(SOURCES, {"SIDESTREAM_PORT": "8000"})]
