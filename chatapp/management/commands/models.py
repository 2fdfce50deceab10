"""`manage.py models`: what is on offer, whether it can be used, and with --test how fast it answers."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatapp.catalogue import SCRIPTED, CatalogueError, ModelConfig, availability
from chatapp.discovery import Discovery
from chatapp.offer import Offer, OfferFile
from chatapp.unseen import visible
from chatapp.upstreams import build_upstream
from streaming.errors import UpstreamError
from streaming.upstream.estimate import estimate_tokens
from streaming.upstream.faults import unexpected
from streaming.upstream.ports import (
    ChatRequest,
    FinishChunk,
    Message,
    Opened,
    ReasoningChunk,
    TextChunk,
    Upstream,
    UsageChunk,
)
from streaming.upstream.scripted import ScriptedUpstream, load_scripts

PROMPT = "Count from one to ten."
ANSWER_TOKENS = 40
# Models that think first need a while before their first word; a person waits for this command.
TEST_S = 60.0


@dataclass(slots=True)
class Trial:
    """What one short call showed."""

    first_token_s: float | None = None
    took_s: float = 0.0
    tokens: int = 0
    is_estimate: bool = True
    ended: str = ""

    def in_words(self) -> str:
        if self.first_token_s is None:
            return self.ended
        rate = self.tokens / max(self.took_s - self.first_token_s, 0.001)
        about = "about " if self.is_estimate else ""
        return f"first token after {self.first_token_s:.2f} s, {about}{rate:.0f} tokens/s, {self.ended}"


class Command(BaseCommand):
    help = "List the models on offer, those found beside the catalogue too, and say which can be used."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="*", metavar="id", help="only these models")
        parser.add_argument("--test", action="store_true", help="call each one briefly; a provider may charge for it")

    def handle(self, *_args: Any, **options: Any) -> None:
        discovery = Discovery(os.environ)
        try:
            offer = OfferFile(str(settings.MODELS_FILE), os.environ, discovery).current()
        except CatalogueError as exc:
            raise CommandError(str(exc)) from exc
        discovery.look()
        for config in _chosen(offer, options["ids"]):
            self._show(config, test=options["test"])
        for source, problem in discovery.problems.items():
            self.stderr.write(f"{source}: its models cannot be listed. {problem.code}: {problem.message}")

    def _show(self, config: ModelConfig, *, test: bool) -> None:
        reason = availability(config, os.environ)
        self._say(f"{config.id}  {config.label}  [{config.adapter}]")
        self._say(f"    {_described(config)}" if reason is None else f"    cannot be used: {reason}")
        if test and reason is None:
            self._say(f"    {asyncio.run(_try(config)).in_words()}")

    def _say(self, text: str) -> None:
        # Names and labels are the services' own: one could command the terminal, or pose as a line of ours.
        self.stdout.write(visible(text))


def _chosen(offer: Offer, ids: Iterable[str]) -> list[ModelConfig]:
    if not ids:
        return offer.configs()
    found = {name: offer.find(name) for name in ids}
    unknown = [name for name, config in found.items() if config is None]
    if unknown:
        raise CommandError(f"There is no model {', '.join(unknown)}. Without ids, all are listed.")
    return [config for config in found.values() if config is not None]


def _described(config: ModelConfig) -> str:
    parts = ["can be used"]
    if config.context_tokens:
        parts.append(f"context {config.context_tokens:,} tokens")
    if config.capabilities:
        parts.append(", ".join(config.capabilities))
    if price := config.price:
        parts.append(f"{price.input:g} in, {price.output:g} out {price.currency} a million tokens on {price.as_of}")
    return "; ".join(parts)


async def _try(config: ModelConfig) -> Trial:
    trial = Trial()
    began = time.monotonic()
    try:
        async with asyncio.timeout(TEST_S):
            await _call(config, trial, began)
    except UpstreamError as exc:
        trial.ended = f"{exc.code}: {exc.message}"
    except TimeoutError:
        trial.ended = f"no end within {TEST_S:.0f} s"
    except Exception as exc:  # noqa: BLE001 (its words may hold the key)
        fault = unexpected(exc)
        trial.ended = f"{fault.code}: {fault.detail}"
    trial.took_s = time.monotonic() - began
    return trial


async def _call(config: ModelConfig, trial: Trial, began: float) -> None:
    params = {**config.params, "max_tokens": min(config.params.get("max_tokens", ANSWER_TOKENS), ANSWER_TOKENS)}
    call = _upstream(config).call(ChatRequest(config.model, (Message("user", PROMPT),), params))
    written = ""
    try:
        async for chunk in call:
            if isinstance(chunk, TextChunk | ReasoningChunk):
                written += chunk.text
            if isinstance(chunk, UsageChunk) and chunk.output:
                trial.tokens, trial.is_estimate = chunk.output, False
            if isinstance(chunk, FinishChunk):
                trial.ended = f"finish {chunk.finish}"
            elif trial.first_token_s is None and not isinstance(chunk, Opened | UsageChunk):
                trial.first_token_s = time.monotonic() - began
    finally:
        await call.close()
    if trial.is_estimate:
        trial.tokens = estimate_tokens(written)


def _upstream(config: ModelConfig) -> Upstream:
    if config.adapter == SCRIPTED:
        return ScriptedUpstream(load_scripts(), deadlines=config.deadlines)
    return build_upstream(config, config.address_in(os.environ) or "", config.key_in(os.environ))
