"""The models on offer: the operator's catalogue together with this machine's environment."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from chatapp.catalogue import CatalogueError, ModelConfig, availability, parse_catalogue, to_public
from chatapp.errors import Problem
from chatapp.parsing import PaneChoice

logger = logging.getLogger(__name__)

# What an answer may take of the context when nobody said how long it may be.
DEFAULT_ANSWER_TOKENS = 512


class Offer:
    """One reading of the catalogue. Which models can be used depends on the environment, too."""

    def __init__(self, configs: Mapping[str, ModelConfig], environ: Mapping[str, str]) -> None:
        self._configs = configs
        self._environ = environ

    @cached_property
    def _public(self) -> list[dict[str, Any]]:
        return [to_public(config, availability(config, self._environ)) for config in self._configs.values()]

    def public(self) -> list[dict[str, Any]]:
        """List the models for people, in the catalogue's order."""
        return self._public

    def find(self, model: str) -> ModelConfig | None:
        return self._configs.get(model)

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


class OfferFile:
    """The catalogue's file, read again when it has changed. A mistake in it leaves what was there in force."""

    def __init__(self, path: str, environ: Mapping[str, str]) -> None:
        self._path = Path(path)
        self._environ = environ
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
            return Offer({config.id: config for config in parse_catalogue(self._path)}, self._environ)
        except CatalogueError as exc:
            if before is None:
                raise
            logger.warning("The models on offer stay as they were. %s", exc)
            return before
