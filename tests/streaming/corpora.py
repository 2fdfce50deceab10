"""Payloads and examples from the corpora beside the repository. They are data: read here, never copied.

The corpora lie in `corpora` of the folder that SIDESTREAM_SHARED names, or of `shared` next to the
repository. Tests that need them are marked with `needs_corpora`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]
_SHARED = Path(os.environ.get("SIDESTREAM_SHARED") or _REPOSITORY.parent / "shared")
CORPORA = _SHARED / "corpora"

needs_corpora = pytest.mark.skipif(
    not CORPORA.is_dir(), reason="the corpora are not there: set SIDESTREAM_SHARED to the folder that holds them"
)
_GENERATORS = "pathological.json"


@dataclass(frozen=True, slots=True)
class Payload:
    """A text that a model might write to do harm, or to break a parser."""

    file: str
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Example:
    """A conformance example: what a piece of Markdown means."""

    file: str
    id: str
    markdown: str
    html: str
    extension: str  # Empty, or the GFM extension that it needs.


@dataclass(frozen=True, slots=True)
class Generator:
    """A Python expression over n that gives a text of that order."""

    id: str
    expression: str
    n: int

    def text(self, limit: int) -> str:
        """Give the text for the greatest n, at most the corpus's own, that stays below `limit`."""
        n = self.n
        while len(text := self._evaluate(n)) > limit:
            n = n * 4 // 5
        return text

    def _evaluate(self, n: int) -> str:
        return str(eval(self.expression, {"__builtins__": {"range": range}}, {"n": n}))


def payloads() -> Iterator[Payload]:
    """Give every payload of every file, the Markdown of the examples included."""
    for path in _files():
        data = _read(path)
        if isinstance(data, dict):
            yield from (Payload(path.name, item["id"], item.get("payload") or item["text"]) for item in data["items"])
    yield from (Payload(example.file, example.id, example.markdown) for example in examples())


def examples() -> Iterator[Example]:
    for path in _files():
        data = _read(path)
        if isinstance(data, list):
            for item in data:
                yield Example(
                    path.name, str(item["example"]), item["markdown"], item["html"], item.get("extension", "")
                )


def generators() -> Iterator[Generator]:
    if CORPORA.is_dir():
        for item in _read(CORPORA / _GENERATORS)["items"]:
            yield Generator(item["id"], item["generator"], item["n_default"])


def _files() -> list[Path]:
    return [path for path in sorted(CORPORA.glob("*.json")) if path.name != _GENERATORS]


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
