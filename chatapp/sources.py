"""Where models can be found without being written down: providers whose key is there, and servers on usual ports.

What each lists, and how that reads as models of ours. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from chatapp.modelconfig import LLAMACPP, ModelConfig, Price
from streaming.upstream import anthropic, gemini
from streaming.upstream.request import Headers, bearer

# From one row of a list to what is known of the model; None for what is no model to chat with.
Read: TypeAlias = Callable[[Mapping[str, Any], date], "Found | None"]


@dataclass(frozen=True, slots=True)
class Found:
    """What a list says of a model."""

    name: str
    label: str = ""
    context_tokens: int | None = None
    capabilities: tuple[str, ...] = ()
    price: Price | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Ids of its models are `<id>:<the service's own name>`, so that one can be called before it is listed."""

    id: str
    label: str
    adapter: str
    address: str
    list_url: str
    read: Read
    key_env: str | None = None  # None: a server of one's own.
    accent: str = ""
    rows: str = "data"  # Where in the list its rows are.
    authorise: Callable[[str, str, bytes], Headers] = bearer
    headers: Mapping[str, str] = field(default_factory=dict)

    def config(self, found: Found) -> ModelConfig:
        return ModelConfig(
            id=f"{self.id}:{found.name}", label=f"{found.label or found.name} ({self.label})", adapter=self.adapter,
            model=found.name, address=self.address, key_env=self.key_env, accent=self.accent,
            context_tokens=found.context_tokens, capabilities=found.capabilities, price=found.price,
        )  # fmt: skip

    def models(self, listed: Any, today: date) -> list[ModelConfig]:
        """Read a list. Rows of an unexpected shape are passed over: it is the service's to change."""
        rows = listed if isinstance(listed, list) else listed.get(self.rows) if isinstance(listed, dict) else None
        return [self.config(found) for row in rows or () if (found := _readable(self.read, row, today))]


def _readable(read: Read, row: Any, today: date) -> Found | None:
    try:
        found = read(row, today)
    except (AttributeError, TypeError, KeyError, ValueError):
        return None
    return found if found and isinstance(found.name, str) and found.name else None


# Lists name models for everything; what their names say is all that some of them tell.
_NO_CHAT: Final = re.compile(
    r"embed|whisper|tts|dall-e|moderation|transcribe|realtime|image|audio|sora|rerank|guard|ocr|speech|babbage|davinci"
    r"|-instruct-0914|imagen|veo|computer-use|search-api"
)


def _chat(name: str) -> bool:
    return not _NO_CHAT.search(name.lower())


def _openai_like(row: Mapping[str, Any], _today: date) -> Found | None:
    context = row.get("context_window") or row.get("max_model_len") or row.get("context_length")
    usable = row.get("active", True) and _chat(row["id"])
    return Found(row["id"], context_tokens=_whole(context)) if usable else None


def _anthropic(row: Mapping[str, Any], _today: date) -> Found | None:
    return Found(row["id"], row.get("display_name") or "", capabilities=("reasoning", "tools", "images"))


def _gemini(row: Mapping[str, Any], _today: date) -> Found | None:
    name = row["name"].removeprefix("models/")
    if "generateContent" not in row["supportedGenerationMethods"] or not _chat(name):
        return None
    seen = ("reasoning",) if row.get("thinking") else ()
    return Found(name, row.get("displayName") or "", _whole(row.get("inputTokenLimit")), seen)


def _mistral(row: Mapping[str, Any], _today: date) -> Found | None:
    able = row["capabilities"]
    if not able["completion_chat"] or not _chat(row["id"]):
        return None
    ours = (("function_calling", "tools"), ("vision", "images"), ("reasoning", "reasoning"))
    seen = tuple(name for theirs, name in ours if able.get(theirs))
    return Found(row["id"], context_tokens=_whole(row.get("max_context_length")), capabilities=seen)


def _openrouter(row: Mapping[str, Any], today: date) -> Found | None:
    words = {*row.get("supported_parameters", ()), *row["architecture"]["input_modalities"]}
    if "text" not in row["architecture"]["output_modalities"]:
        return None
    ours = (("reasoning", "reasoning"), ("tools", "tools"), ("image", "images"), ("structured_outputs", "json_schema"))
    seen = tuple(name for theirs, name in ours if theirs in words)
    context = _whole(row.get("context_length"))
    return Found(row["id"], row.get("name") or "", context, seen, _openrouter_price(row.get("pricing"), today))


def _openrouter_price(raw: Mapping[str, str] | None, today: date) -> Price | None:
    """Read dollars for a token. A negative price means that it depends, and so is none."""
    if not raw or float(raw["prompt"]) < 0 or float(raw["completion"]) < 0:
        return None
    read, written = (round(float(raw[name]) * 1_000_000, 6) for name in ("prompt", "completion"))
    cached = raw.get("input_cache_read")
    return Price(
        read, written, "USD", today, round(float(cached) * 1_000_000, 6) if cached else None,
        "https://openrouter.ai/api/v1/models",
    )  # fmt: skip


def _together(row: Mapping[str, Any], _today: date) -> Found | None:
    chat = row.get("type") == "chat"
    return Found(row["id"], row.get("display_name") or "", _whole(row.get("context_length"))) if chat else None


def _cohere(row: Mapping[str, Any], _today: date) -> Found | None:
    chat = "chat" in row["endpoints"] and not row.get("is_deprecated")
    return Found(row["name"], context_tokens=_whole(row.get("context_length"))) if chat else None


def _ollama(row: Mapping[str, Any], _today: date) -> Found | None:
    able = row.get("capabilities") or ()
    if not _chat(row["name"]) or (able and "completion" not in able):
        return None
    ours = (("thinking", "reasoning"), ("tools", "tools"), ("vision", "images"))
    return Found(row["name"], capabilities=tuple(name for theirs, name in ours if theirs in able))


def _llamacpp(row: Mapping[str, Any], _today: date) -> Found | None:
    # Port 8080 is everybody's; only llama.cpp's own server has the endpoints that this adapter calls.
    ours = row.get("owned_by") == "llamacpp"
    context = _whole((row.get("meta") or {}).get("n_ctx"))
    return Found(row["id"], context_tokens=context, capabilities=("token_ids",)) if ours else None


def _whole(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


def _provider(id: str, label: str, address: str, key_env: str, accent: str = "", read: Read = _openai_like) -> Source:  # noqa: A002
    return Source(id, label, "openai_chat", address, f"{address}/models", read, key_env, accent)


def _local(id: str, label: str, port: int, read: Read = _openai_like) -> Source:  # noqa: A002
    address = f"http://127.0.0.1:{port}/v1"
    return Source(id, label, "openai_chat", address, f"{address}/models", read)


_ANTHROPIC: Final = "https://api.anthropic.com/v1"
_GEMINI: Final = "https://generativelanguage.googleapis.com/v1beta"
SOURCES: Final[tuple[Source, ...]] = (
    Source(
        "openai", "OpenAI", "openai_responses", "https://api.openai.com/v1", "https://api.openai.com/v1/models",
        _openai_like, "OPENAI_API_KEY",
    ),
    Source(
        "anthropic", "Anthropic", "anthropic", _ANTHROPIC, f"{_ANTHROPIC}/models?limit=1000", _anthropic,
        "ANTHROPIC_API_KEY", authorise=anthropic.authorise, headers=anthropic.HEADERS,
    ),
    Source(
        "gemini", "Gemini", "gemini", _GEMINI, f"{_GEMINI}/models?pageSize=1000", _gemini,
        "GEMINI_API_KEY", rows="models", authorise=gemini.authorise,
    ),
    _provider("mistral", "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral", _mistral),
    _provider("deepseek", "DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek"),
    _provider("groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", "groq"),
    _provider("xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY", "xai"),
    _provider("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", read=_openrouter),
    _provider("together", "Together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", read=_together),
    Source(
        "cohere", "Cohere", "cohere", "https://api.cohere.com/v2",
        "https://api.cohere.com/v1/models?endpoint=chat&page_size=1000", _cohere, "COHERE_API_KEY", rows="models",
    ),
    Source(
        "ollama", "Ollama", "ollama", "http://127.0.0.1:11434", "http://127.0.0.1:11434/api/tags", _ollama,
        rows="models",
    ),
    _local("lmstudio", "LM Studio", 1234),
    Source(
        "llamacpp", "llama.cpp", LLAMACPP, "http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/models", _llamacpp,
    ),
    _local("vllm", "vLLM", 8000),
)  # fmt: skip


def active(sources: tuple[Source, ...], environ: Mapping[str, str]) -> Iterator[Source]:
    """Give the providers whose key is set, and the local servers but for the port that is Sidestream's own."""
    own = environ.get("SIDESTREAM_PORT", "")
    for source in sources:
        if source.key_env is None:
            if str(urlsplit(source.address).port) != own:
                yield source
        elif environ.get(source.key_env, "").strip():
            yield source
