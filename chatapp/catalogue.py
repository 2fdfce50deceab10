"""
The operator's models: one TOML file, read into values.

`models.toml` explains the keys. Keys of services never stand in the file: it names the environment
variable that holds them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

from chatapp.cataloguefile import read_models
from chatapp.modelconfig import LLAMACPP, SCRIPTED, ModelConfig, Price, availability, to_public

__all__ = [
    "LLAMACPP", "SCRIPTED", "CatalogueError", "ModelConfig", "Price", "availability", "parse_catalogue", "to_public",
]  # fmt: skip


class CatalogueError(Exception):
    """The file cannot be used. The message names every mistake, with its line and what to write instead."""


def parse_catalogue(path: Path) -> Sequence[ModelConfig]:
    """
    Read a catalogue file.

    Raises:
        CatalogueError: it cannot be read, or has mistakes; all of them are named.
    """
    try:
        source = path.read_text("utf-8")
        document = tomllib.loads(source)
    except (OSError, UnicodeDecodeError) as exc:
        raise CatalogueError(f"{path}: cannot be read as UTF-8 text ({exc}). Check MODELS_FILE.") from exc
    except tomllib.TOMLDecodeError as exc:
        raise CatalogueError(f"{path}: is not TOML: {exc}.") from exc
    models, mistakes = read_models(document, source)
    if mistakes:
        raise CatalogueError("\n".join(f"{path}, {mistake}" for mistake in mistakes))
    return models
