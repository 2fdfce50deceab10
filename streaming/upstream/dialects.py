"""All dialects that are spoken over HTTP in one way, by the names that the catalogue uses."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final
from urllib.parse import quote

from streaming.upstream import (
    anthropic,
    bedrock,
    bedrock_invoke,
    cohere,
    gemini,
    interactions,
    ollama,
    openai_chat,
    responses,
)
from streaming.upstream.request import Headers
from streaming.upstream.spec import DialectSpec, HttpUpstream

__all__ = ["AZURE_API_VERSION", "DIALECTS", "DialectSpec", "HttpUpstream", "azure_spec", "openai_chat_spec"]

# The newest one that is no preview, for deployments whose catalogue entry names none.
AZURE_API_VERSION: Final = "2024-10-21"


def openai_chat_spec(accent: str = "") -> DialectSpec:
    """
    Chat Completions as one of its relatives speaks it.

    Raises:
        KeyError: no such accent; openai_chat.ACCENTS names them.
    """
    ours = openai_chat.ACCENTS[accent]
    return DialectSpec(
        path="/chat/completions",
        build_body=partial(openai_chat.build_body, accent=ours),
        open=partial(openai_chat.OpenAIChat, accent=ours),
    )


def azure_spec(api_version: str = AZURE_API_VERSION) -> DialectSpec:
    """Give Chat Completions as an Azure resource speaks it: `model` is the deployment, a part of the address."""
    chat = openai_chat_spec("openai")
    path = f"/openai/deployments/{{model}}/chat/completions?api-version={quote(api_version)}"
    return replace(chat, path=path, authorise=azure_key)


def azure_key(key: str, url: str, content: bytes) -> Headers:  # noqa: ARG001
    return {"api-key": key}


DIALECTS: Final[dict[str, DialectSpec]] = {
    "openai_chat": openai_chat_spec(),
    "azure": azure_spec(),
    "openai_responses": DialectSpec("/responses", responses.build_body, responses.Responses),
    "anthropic": DialectSpec(
        "/messages", anthropic.build_body, anthropic.Anthropic, anthropic.authorise, anthropic.HEADERS
    ),
    "gemini": DialectSpec(
        "/models/{model}:streamGenerateContent?alt=sse", gemini.build_body, gemini.Gemini, gemini.authorise
    ),
    "gemini_interactions": DialectSpec(
        "/interactions?alt=sse", interactions.build_body, interactions.Interactions, gemini.authorise
    ),
    "ollama": DialectSpec("/api/chat", ollama.build_body, ollama.Ollama),
    "cohere": DialectSpec("/chat", cohere.build_body, cohere.Cohere),
    "bedrock": DialectSpec("/model/{model}/converse-stream", bedrock.build_body, bedrock.Bedrock, bedrock.authorise),
    "bedrock_invoke": DialectSpec(
        "/model/{model}/invoke-with-response-stream",
        bedrock_invoke.build_body,
        bedrock_invoke.BedrockInvoke,
        bedrock.authorise,
    ),
}
