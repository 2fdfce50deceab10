"""
The operator's models: one TOML file, read into values.

`models.toml` explains the keys. Keys of services never stand in the file: it names the environment
variable that holds them.
"""

from __future__ import annotations

import codecs
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from chatapp.cataloguefile import read_models
from chatapp.modelconfig import LLAMACPP, SCRIPTED, ModelConfig, Price, availability, to_public
from chatapp.unseen import named

__all__ = [
    "LLAMACPP", "SCRIPTED", "CatalogueError", "ModelConfig", "Price", "availability", "parse_catalogue", "to_public",
]  # fmt: skip


# Without a mark, what they write of our letters holds zero bytes, which TOML never does.
_UTF_16: Final = re.compile(
    b"|".join(map(re.escape, (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))) + rb"|\0?[^\0]\0|\0\0"
)


class CatalogueError(Exception):
    """The file cannot be used. The message names every mistake, with its line and what to write instead."""


def parse_catalogue(path: Path) -> Sequence[ModelConfig]:
    """
    Read a catalogue file.

    Raises:
        CatalogueError: it cannot be read, or has mistakes; all of them are named.
    """
    try:
        source = _text_of(path)
        document = tomllib.loads(source)
    except tomllib.TOMLDecodeError as exc:
        raise CatalogueError(f"{path}: is not TOML: {exc}.{_invisible_in(source)}") from exc
    models, mistakes = read_models(document, source)
    if mistakes:
        raise CatalogueError("\n".join(f"{path}, {mistake}" for mistake in mistakes))
    return models


def _text_of(path: Path) -> str:
    """Read the file. Some editors begin UTF-8 with a byte order mark, or save as UTF-16."""
    try:
        written = path.read_bytes()
        if _UTF_16.match(written):
            raise CatalogueError(f"{path}: is UTF-16 or UTF-32. Save it as UTF-8.")
        return written.decode("utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as exc:
        raise CatalogueError(f"{path}: cannot be read as UTF-8 text ({exc}). Check MODELS_FILE.") from exc


def _invisible_in(source: str) -> str:
    """Name the first character that an editor does not show, for a file that is no TOML because of it, maybe."""
    for number, line in enumerate(source.split("\n"), start=1):
        for column, char in enumerate(line, start=1):
            if char not in "\t " and not char.isprintable():
                return f" In line {number}, column {column} stands {named(char)}; maybe that is why."
    return ""
