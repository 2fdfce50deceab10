"""Token counts as running totals, with one meaning for every service.

`input` counts all tokens that the model read, those from a cache included; `output` all that it
wrote, reasoning included. Services differ (Anthropic and Bedrock leave cached tokens out of the input,
Gemini leaves reasoning out of the output), and panes side by side must not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streaming.upstream.ports import UsageChunk

# What JavaScript can count, and far beyond any answer.
HIGHEST: Final = 2**53


class UsageTotal:
    """
    The last count of each field that the upstream gave: an overlay, never a sum, never an invented zero.

    Services repeat totals, some with every chunk. What is given out is the first, so that a call that
    is cut short has one, and the last.
    """

    def __init__(self) -> None:
        self._fields: dict[str, int] = {}
        self._given = UsageChunk()

    def overlay(self, fields: Mapping[str, int | None]) -> None:
        self._fields.update({name: count for name, count in fields.items() if count is not None})

    def first(self) -> UsageChunk | None:
        """Give the total if none was given yet."""
        return self.last() if self._given == UsageChunk() else None

    def last(self) -> UsageChunk | None:
        """Give the total if it is not what was given last."""
        total = UsageChunk(**self._fields)
        if total == self._given:
            return None
        self._given = total
        return total


def count(raw: Mapping[str, Any], *names: str) -> int | None:
    """Read the first of `names` that holds a count; a dot goes one level down."""
    for name in names:
        value: Any = raw
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= HIGHEST:
            return int(value)
    return None


def added(*counts: int | None) -> int | None:
    """Add what is known; None if nothing is."""
    known = [n for n in counts if n is not None]
    return sum(known) if known else None


def openai_usage(raw: Mapping[str, Any]) -> dict[str, int | None]:
    """Read Chat Completions and Responses usage, which differ in names only, and what relatives call it."""
    read = count(raw, "prompt_tokens", "input_tokens")
    written = count(raw, "completion_tokens", "output_tokens")
    details = ("completion_tokens_details", "output_tokens_details")
    reasoning = count(raw, *(f"{name}.reasoning_tokens" for name in details), "reasoning_tokens")
    # xAI counts reasoning beside the completion, all others inside it. The total tells.
    if reasoning and count(raw, "total_tokens") == added(read, written, reasoning):
        written = added(written, reasoning)
    cached = count(
        raw,
        "prompt_tokens_details.cached_tokens",
        "input_tokens_details.cached_tokens",
        "prompt_cache_hit_tokens",
        "cached_tokens",
    )
    return {"input": read, "output": written, "cached": cached, "reasoning": reasoning}
