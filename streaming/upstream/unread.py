"""Text in an object, under any name that some service gives to text."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from io import StringIO
from typing import Any, Final

# A string, or a list of strings, under one of these is something that a model said.
TEXTS: Final = frozenset(
    {
        "text", "content", "parts", "delta", "refusal", "reasoning", "reasoning_content", "reasoning_text", "thinking",
        "thought", "thoughts", "response", "output", "output_text", "outputText", "generated_text", "generation",
        "completion", "answer", "snapshot", "tool_plan", "transcript", "value",
    }
)  # fmt: skip
# Whatever stands under one of these is for a tool.
ARGUMENTS: Final = frozenset({"arguments", "args", "partial_json"})
# More than an answer may hold. So much of what nobody reads is kept until it is known whether it came elsewhere.
UNREAD_CHARS: Final = 1_000_000
# What is not looked into: others' words, the prompt's, and what is told about the answer.
ASIDE: Final = frozenset(
    {
        "logprobs", "usage", "annotations", "citations", "citation", "documents", "search_results", "references",
        "groundingMetadata", "citationMetadata", "safetyRatings", "promptFeedback", "prompt", "prompt_logprobs",
        "generation_settings", "input", "tools", "request", "metadata", "signature", "trace", "timings",
    }
)  # fmt: skip


def texts_in(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Give each text, and the arguments of each call, with the path of names that leads to it."""
    name = path.rpartition(".")[2]
    if name in ARGUMENTS and value:
        yield path, value if isinstance(value, str) else json.dumps(value)
    elif isinstance(value, dict):
        for inner, member in value.items():
            if inner not in ASIDE:
                yield from texts_in(member, f"{path}.{inner}")
    elif isinstance(value, list):
        for member in value:
            yield from texts_in(member, path)
    elif isinstance(value, str) and value and name in TEXTS:
        yield path, value


class Unread:
    """Text that nobody knows how to read, by the path that leads to it, until it is known whether it came elsewhere."""

    def __init__(self) -> None:
        self._all = StringIO()
        self._places: dict[str, StringIO] = {}
        self._last: dict[str, str] = {}  # What came at each place last: some repeat all that they said so far.
        self._size = 0

    def add(self, path: str, text: str) -> bool:
        """Keep a text; False when there is more of it than could be what came elsewhere."""
        if path not in self._places:
            self._places[path] = StringIO()
            self._size += len(path)
        self._places[path].write(text)
        self._all.write(text)
        self._last[path] = text
        self._size += len(text)
        return self._size <= UNREAD_CHARS

    def take(self, other: Unread) -> None:
        """Add what another has kept."""
        for path, place in other._places.items():
            self.add(path, place.getvalue())

    def lost(self, came: Collection[str]) -> str | None:
        """Give the path to a text that did not come: as one, as all at its place, or as all at all places."""
        if not self._size or self._all.getvalue() in came:
            return None
        return next((path for path, place in self._places.items() if not self._came(path, place, came)), None)

    def _came(self, path: str, place: StringIO, came: Collection[str]) -> bool:
        return self._last[path] in came or place.getvalue() in came


def listed(value: Any) -> list[Any]:
    """Give a list without nulls, where some services send one member of it alone, or null."""
    if isinstance(value, list):
        return [member for member in value if member is not None]
    return [value] if value else []
