"""Content in whatever shape: text, a part, or parts within parts."""

from __future__ import annotations

from typing import Any, Final

from streaming.upstream.answer import Answer
from streaming.upstream.unread import listed

_TEXTS: Final = ("text", "output_text", "content", "parts", "value")
# Parts of these kinds hold what a model thought, under whatever name.
_THOUGHTS: Final = ("thinking", "thought", "reasoning", "summary")


def take_content(answer: Answer, content: Any, *, thoughts: bool = False) -> None:
    """
    Read content; `thoughts`: it stands where reasoning belongs.

    What a part is, its members tell where its type does not. A part that holds text under no known name is not read.
    """
    text = content["text"] if content.__class__ is dict and _is_plain(content) else content
    if isinstance(text, str):
        if text:
            (answer.reasoning if thoughts else answer.text)(text)
        return
    for part in listed(content):
        if isinstance(part, dict):
            _part(answer, part, thoughts=thoughts)
        elif isinstance(part, str | list):
            take_content(answer, part, thoughts=thoughts)
        elif part:
            raise TypeError(f"{part!r} is no content")


def _is_plain(part: dict[str, Any]) -> bool:
    """Say whether a part is nothing but text, as nearly all are: to look for more takes longer."""
    return "text" in part and (len(part) == 1 or (len(part) == 2 and part.get("type") == "text"))


def take_reasoning(answer: Answer, reasoning: Any) -> None:
    """Read reasoning: text, or parts of it. What is encrypted says nothing."""
    take_content(answer, reasoning, thoughts=True)


def _part(answer: Answer, part: dict[str, Any], *, thoughts: bool) -> None:
    kind = str(part.get("type") or "")
    thoughts = thoughts or part.get("thought") is True or any(word in kind for word in _THOUGHTS)
    before = answer.taken
    if part.get("refusal"):
        _refusal(answer, part["refusal"])
    for name in _THOUGHTS:
        if part.get(name) is not True:
            take_content(answer, part.get(name), thoughts=True)
    text = next((part[name] for name in _TEXTS if part.get(name)), None)
    take_content(answer, text, thoughts=thoughts)
    if answer.taken == before:
        answer.unread(part)


def _refusal(answer: Answer, refusal: Any) -> None:
    if isinstance(refusal, str):
        answer.refusal(refusal)
    else:
        answer.unread({"refusal": refusal})
