"""Upstream objects for the catalogue's models."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from chatapp.catalogue import LLAMACPP, SCRIPTED, ModelConfig, availability
from chatapp.offer import Offer
from streaming.errors import UpstreamError
from streaming.store import Job
from streaming.upstream.dialects import DIALECTS, HttpUpstream, openai_chat_spec
from streaming.upstream.llamacpp import LlamaCppUpstream
from streaming.upstream.ports import ChatRequest, Upstream
from streaming.upstream.scripted import ScriptedUpstream, load_scripts


class Upstreams:
    """Builds each model's upstream once, and again when the catalogue says something else of it."""

    def __init__(self, offer: Callable[[], Offer], environ: Mapping[str, str]) -> None:
        self._offer = offer
        self._environ = environ
        self._built: dict[str, tuple[ModelConfig, Upstream]] = {}

    def prepare(self, job: Job) -> tuple[Upstream, ChatRequest]:
        """
        Give what a driver needs to call a job's model.

        Raises:
            UpstreamError: `model_unavailable`; the catalogue has changed since the turn was added.
        """
        config = self._offer().find(job.model)
        if config is None:
            raise UpstreamError("model_unavailable", "This model is not offered any more. Choose another.")
        reason = availability(config, self._environ)
        if reason is not None:
            raise UpstreamError("model_unavailable", reason)
        return self._upstream(config), ChatRequest(config.model, job.messages, job.params)

    def _upstream(self, config: ModelConfig) -> Upstream:
        known, upstream = self._built.get(config.id, (None, None))
        if upstream is None or known != config:
            upstream = self._build(config)
            self._built[config.id] = config, upstream
        return upstream

    def _build(self, config: ModelConfig) -> Upstream:
        if config.adapter == SCRIPTED:
            return ScriptedUpstream(load_scripts(), deadlines=config.deadlines)
        address, key = config.address_in(self._environ) or "", config.key_in(self._environ)
        if config.adapter == LLAMACPP:
            return LlamaCppUpstream(address, key=key, deadlines=config.deadlines, limits=config.limits)
        spec = openai_chat_spec(config.accent) if config.adapter == "openai_chat" else DIALECTS[config.adapter]
        return HttpUpstream(spec, address, key, deadlines=config.deadlines, limits=config.limits)
