"""All dialects that are spoken over HTTP in one way, by the names that the catalogue uses."""

from __future__ import annotations

from functools import partial
from typing import Final

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
from streaming.upstream.spec import DialectSpec, HttpUpstream

__all__ = ["DIALECTS", "DialectSpec", "HttpUpstream", "openai_chat_spec"]


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


DIALECTS: Final[dict[str, DialectSpec]] = {
    "openai_chat": openai_chat_spec(),
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
