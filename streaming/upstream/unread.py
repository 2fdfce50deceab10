"""Text in an object, under any name that some service gives to text."""

from __future__ import annotations

import json
from collections.abc import Iterator
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


def listed(value: Any) -> list[Any]:
    """Give a list without nulls, where some services send one member of it alone, or null."""
    if isinstance(value, list):
        return [member for member in value if member is not None]
    return [value] if value else []
