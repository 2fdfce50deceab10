"""Upstream objects for the catalogue's models: each built once, behind its service's breaker and its model's queue."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

from chatapp.catalogue import LLAMACPP, SCRIPTED, ModelConfig, availability
from chatapp.offer import Offer
from streaming.errors import UpstreamError
from streaming.store import Job
from streaming.upstream.background import BackgroundUpstream
from streaming.upstream.breaker import Breaker, Rest
from streaming.upstream.dialects import AZURE_API_VERSION, DIALECTS, HttpUpstream, azure_spec, openai_chat_spec
from streaming.upstream.faults import fault
from streaming.upstream.guarded import GuardedUpstream
from streaming.upstream.llamacpp import LlamaCppUpstream
from streaming.upstream.ports import ChatRequest, Upstream
from streaming.upstream.request import IMAGES
from streaming.upstream.scripted import ScriptedUpstream, load_scripts
from streaming.upstream.spec import DialectSpec
from streaming.upstream.turns import AtOnce, Place, Turns


class Upstreams:
    """
    Builds each model's upstream once, and again when the catalogue says something else of it.

    `told` hears of each service that begins or ends a rest, by its address; it must not block.
    """

    def __init__(
        self,
        offer: Callable[[], Offer],
        environ: Mapping[str, str],
        told: Callable[[str, Rest | None], None] = lambda _address, _rest: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._offer = offer
        self._environ = environ
        self._told = told
        self._clock = clock
        self._built: dict[str, tuple[ModelConfig, Upstream]] = {}
        self._breakers: dict[str, Breaker] = {}
        self._turns: dict[tuple[str, int], Turns] = {}

    def prepare(self, job: Job) -> tuple[Upstream, ChatRequest]:
        """
        Give what a driver needs to call a job's model.

        Raises:
            UpstreamError: `model_unavailable`; the catalogue has changed since the turn was added.
                `unsupported_images`, where the catalogue does not say that the model sees.
        """
        config = self._offer().find(job.model)
        if config is None:
            raise UpstreamError("model_unavailable", "This model is not offered any more. Choose another.")
        reason = availability(config, self._environ)
        if reason is not None:
            raise UpstreamError("model_unavailable", reason)
        if IMAGES not in config.capabilities and any(message.images for message in job.messages):
            raise fault("unsupported_images")
        return self._upstream(config), ChatRequest(config.model, job.messages, job.params)

    def queue(self, job: Job) -> Place:
        """Take a place among those who wait for a job's model, in this process. Owners take turns."""
        config = self._offer().find(job.model)
        if config is None or config.max_running is None:
            return AtOnce()
        turns = self._turns.setdefault((config.id, config.max_running), Turns(config.max_running))
        return turns.ask(job.owner)

    def _upstream(self, config: ModelConfig) -> Upstream:
        known, upstream = self._built.get(config.id, (None, None))
        if upstream is None or known != config:
            upstream = self._build(config)
            self._built[config.id] = config, upstream
        return upstream

    def _build(self, config: ModelConfig) -> Upstream:
        if config.adapter == SCRIPTED:
            return ScriptedUpstream(load_scripts(), deadlines=config.deadlines)
        address = config.address_in(self._environ) or ""
        breaker = self._breakers.setdefault(address, Breaker())
        upstream = build_upstream(config, address, config.key_in(self._environ))
        return GuardedUpstream(upstream, breaker, self._clock, partial(self._told, address))


def build_upstream(config: ModelConfig, address: str, key: str | None) -> Upstream:
    """Build what speaks a model's dialect over HTTP."""
    deadlines, limits = config.deadlines, config.limits
    if config.adapter == LLAMACPP:
        return LlamaCppUpstream(address, key=key, deadlines=deadlines, limits=limits)
    if config.background:
        return BackgroundUpstream(address, key, deadlines, limits)
    return HttpUpstream(spec_of(config, address), address, key, deadlines=deadlines, limits=limits)


def spec_of(config: ModelConfig, address: str) -> DialectSpec:
    """Give how a model's dialect is called at an address, for all dialects but llama.cpp's own."""
    if config.adapter == "openai_chat":
        return openai_chat_spec(config.accent_at(address))
    if config.adapter == "azure":
        return azure_spec(config.api_version or AZURE_API_VERSION)
    return DIALECTS[config.adapter]
