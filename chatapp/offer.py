"""The models on offer: the operator's catalogue, what was found beside it, and this machine's environment."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chatapp.catalogue import CatalogueError, ModelConfig, availability, parse_catalogue, to_public
from chatapp.discovery import Discovery
from chatapp.errors import Problem
from chatapp.parsing import PaneChoice
from streaming.upstream.breaker import Rest

logger = logging.getLogger(__name__)

# What an answer may take of the context when nobody said how long it may be.
DEFAULT_ANSWER_TOKENS = 512


class Offer:
    """One reading of the catalogue. Which models can be used depends on the environment, too."""

    def __init__(
        self, configs: Mapping[str, ModelConfig], environ: Mapping[str, str], discovery: Discovery | None = None
    ) -> None:
        self._configs = configs
        self._environ = environ
        self._discovery = discovery
        self._listed: tuple[int, list[dict[str, Any]]] = (-1, [])

    def configs(self) -> list[ModelConfig]:
        """List the catalogue's models in its order, then those that were found and are not among them."""
        written = list(self._configs.values())
        known = {(config.address_in(self._environ), config.model) for config in written}
        found = self._discovery.models() if self._discovery else []
        return written + [config for config in found if (config.address, config.model) not in known]

    def public(self, resting: Mapping[str, Rest] | None = None, now: float = 0.0) -> list[dict[str, Any]]:
        """
        List the models for people.

        `resting` are the services that rest, by their addresses; a rest that is over at `now`, in epoch
        seconds, counts no more: somebody has to try.
        """
        rests = {address: rest for address, rest in (resting or {}).items() if rest.until > now}
        if rests:
            return [self._to_public(config, rests, now) for config in self.configs()]
        version = self._discovery.version if self._discovery else 0
        configs = self.configs()  # Asked each time, since asking is what starts another look.
        if self._listed[0] != version:
            self._listed = version, [self._to_public(config, {}, now) for config in configs]
        return self._listed[1]

    def find(self, model: str) -> ModelConfig | None:
        return self._configs.get(model) or (self._discovery.find(model) if self._discovery else None)

    def label(self, model: str) -> str:
        """Give what people call a model; the id of one that is no longer offered."""
        config = self.find(model)
        return config.label if config else model

    def effective_params(self, choice: PaneChoice) -> dict[str, Any]:
        """
        Give the parameters that a pane's generation has: its model's own, and over them the pane's.

        Raises:
            Problem: `unknown_model` or `model_unavailable`.
        """
        config = self.find(choice.model)
        if config is None:
            raise Problem("unknown_model", "There is no such model here. Choose another.", model=choice.model)
        reason = availability(config, self._environ)
        if reason is not None:
            detail = f"{config.label} cannot be used here."
            raise Problem("model_unavailable", detail, model=choice.model, reason=reason)
        return {**config.params, **choice.params}

    def system(self, model: str) -> str:
        config = self.find(model)
        return (config.system if config else "") or ""

    def prompt_budget(self, model: str, max_tokens: int | None) -> int | None:
        """Give the tokens that messages may take; None when the model's context is not known."""
        config = self.find(model)
        if config is None or config.context_tokens is None:
            return None
        return config.context_tokens - min(max_tokens or DEFAULT_ANSWER_TOKENS, config.context_tokens // 2)

    def _to_public(self, config: ModelConfig, rests: Mapping[str, Rest], now: float) -> dict[str, Any]:
        rest = rests.get(config.address_in(self._environ) or "")
        return to_public(config, availability(config, self._environ), rest=rest, now=now)


class OfferFile:
    """The catalogue's file, read again when it has changed. A mistake in it leaves what was there in force."""

    def __init__(self, path: str, environ: Mapping[str, str], discovery: Discovery | None = None) -> None:
        self._path = Path(path)
        self._environ = environ
        self._discovery = discovery
        self._stamp: tuple[int, int] | None = None
        self._offer: Offer | None = None

    def current(self) -> Offer:
        """
        Give the offer as the file says now.

        Raises:
            CatalogueError: the file has mistakes, and there was no good one before.
        """
        stamp = self._stamp_now()
        if self._offer is None or stamp != self._stamp:
            self._offer = self._read(self._offer)
            self._stamp = stamp
        return self._offer

    def _stamp_now(self) -> tuple[int, int] | None:
        try:
            stat = self._path.stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size

    def _read(self, before: Offer | None) -> Offer:
        try:
            configs = {config.id: config for config in parse_catalogue(self._path)}
        except CatalogueError as exc:
            if before is None:
                raise
            logger.warning("The models on offer stay as they were. %s", exc)
            return before
        return Offer(configs, self._environ, self._discovery)
