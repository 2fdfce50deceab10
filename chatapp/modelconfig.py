"""One model on offer: what the operator's file says of it, whether it can be used, what people may know. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final
from urllib.parse import urlsplit

from chatapp.keys import mistake_in_key, read_key
from streaming.upstream.breaker import Rest, in_words
from streaming.upstream.deadlines import Deadlines
from streaming.upstream.dialects import DIALECTS
from streaming.upstream.limits import Limits

SCRIPTED: Final = "scripted"
LLAMACPP: Final = "llamacpp"
ADAPTERS: Final = (*DIALECTS, LLAMACPP, SCRIPTED)
# Up to where the provider's version ends. Azure, Bedrock, and servers of one's own have none that is known.
ADDRESSES: Final[Mapping[str, str]] = {
    "openai_chat": "https://api.openai.com/v1",
    "openai_responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
    "gemini_interactions": "https://generativelanguage.googleapis.com/v1beta",
    "ollama": "http://127.0.0.1:11434",
    "cohere": "https://api.cohere.com/v2",
}
# How the providers speak Chat Completions whose addresses are known, for entries that name no accent.
ACCENTS_AT: Final[Mapping[str, str]] = {
    "api.openai.com": "openai",
    "api.mistral.ai": "mistral",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.x.ai": "xai",
    "api.perplexity.ai": "perplexity",
}


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost. Prices change, so one without its date says nothing."""

    input: float
    output: float
    currency: str
    as_of: date
    cached: float | None = None
    source: str | None = None  # Where it was read.


@dataclass(frozen=True, slots=True)
class ModelConfig:
    id: str  # What panes and events name; never the upstream's own name.
    label: str
    adapter: str  # One of ADAPTERS.
    model: str  # The upstream's own name; a script's name, maybe with @rate, where the adapter is scripted.
    address: str | None = None
    address_env: str | None = None
    key_env: str | None = None
    accent: str = ""  # One of openai_chat.ACCENTS: how a relative of Chat Completions differs.
    api_version: str = ""  # Of an Azure resource.
    background: bool = False  # Responses: the service goes on without a connection, and is asked to stop.
    system: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    context_tokens: int | None = None  # Prompt and answer together.
    capabilities: tuple[str, ...] = ()
    max_running: int | None = None  # Answers that one worker process lets it write at a time.
    price: Price | None = None
    deadlines: Deadlines = field(default_factory=Deadlines)
    limits: Limits = field(default_factory=Limits)

    def address_in(self, environ: Mapping[str, str]) -> str | None:
        """Give the address to call: the variable's if the file names one, else the file's or the provider's own."""
        if self.address_env:
            return environ.get(self.address_env, "").strip() or None
        return self.address or ADDRESSES.get(self.adapter)

    def key_in(self, environ: Mapping[str, str]) -> str | None:
        return read_key(environ, self.key_env)

    def accent_at(self, address: str | None) -> str:
        """Give the accent: the one that the file names, else that of a provider at whose address it is."""
        return self.accent or ACCENTS_AT.get(urlsplit(address or "").hostname or "", "")


def availability(config: ModelConfig, environ: Mapping[str, str]) -> str | None:
    """Say in a sentence for people why a model cannot be used; None if it can."""
    if config.adapter == SCRIPTED:
        return None
    address = config.address_in(environ)
    if address is None:
        return _without_address(config)
    if not is_address(address):
        return f"{config.address_env} must be an http or https address."
    if config.key_env and config.key_in(environ) is None:
        return f"Set {config.key_env} to use this model."
    return mistake_in_key(environ, config.key_env) if config.key_env else None


def to_public(config: ModelConfig, reason: str | None, *, rest: Rest | None = None, now: float = 0.0) -> dict[str, Any]:
    """
    Give what everybody may know of a model. Addresses and names of variables stay with the operator.

    `rest`: its service rests; times are epoch seconds.
    """
    price = config.price
    if reason is None and rest is not None:
        reason = in_words(rest, now)
    return {
        "id": config.id,
        "label": config.label,
        "adapter": config.adapter,
        "capabilities": list(config.capabilities),
        "params": dict(config.params),
        "context_tokens": config.context_tokens,
        "price": price and {
            "input": price.input, "cached": price.cached, "output": price.output, "currency": price.currency,
            "as_of": price.as_of.isoformat(), "source": price.source,
        },
        "available": reason is None,
        "reason": reason,
        "resting": rest and {"since": int(rest.since * 1000), "until": int(rest.until * 1000)},
    }  # fmt: skip


def is_address(value: str) -> bool:
    """Accept what can be called: http or https, a host, no name, password, query or fragment, nothing invisible."""
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    strange = parts.username or parts.password or parts.query or parts.fragment or " " in value
    clean = not strange and value.isprintable()
    return parts.scheme in ("http", "https") and bool(host) and clean


def _without_address(config: ModelConfig) -> str:
    if config.adapter == LLAMACPP:
        return f"Start the model server with manage.py up, or set {config.address_env} to the address of one."
    return f"Set {config.address_env} to the address of this model's service."
