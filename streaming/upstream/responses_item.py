"""What an item of a response holds: texts, or a tool call, in pieces and in the final forms that repeat them. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from streaming.errors import UpstreamError
from streaming.upstream.faults import fault
from streaming.upstream.spoken import beyond
from streaming.upstream.tools import as_text, is_object, name_and_arguments

TEXT, REFUSAL, SUMMARY, THINKING = "text", "refusal", "summary", "thinking"
PARTS: Final = {"refusal": REFUSAL, "summary_text": SUMMARY, "reasoning_text": THINKING}  # All others are text.
MESSAGES: Final = (None, "message", "output_text", "text")
CUSTOM: Final = "custom_tool_call"
CALLS: Final = ("function_call", "tool_call", CUSTOM)


def texts_of(item: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Give the texts of an item, each with what it is."""
    kind, content = item.get("type"), item.get("content") or []
    if kind == "reasoning":
        yield from ((SUMMARY, text_of(part)[1]) for part in item.get("summary") or ())
        yield from ((THINKING, text_of(part)[1]) for part in content)
    elif kind in MESSAGES:
        yield from map(text_of, [content] if isinstance(content, str) else content or [item])


def text_of(part: dict[str, Any] | str) -> tuple[str, str]:
    if isinstance(part, str):
        return TEXT, part
    text, refusal = part.get("text") or "", part.get("refusal") or ""
    return (PARTS.get(part.get("type") or "", TEXT) if text else REFUSAL), text or refusal


class ResponsesCall:
    """
    One call. `number` counts the calls of the response, from 0.

    The input of a custom tool is any text. Ours are JSON objects, so it becomes one, as it comes.
    """

    def __init__(self, number: int, item: dict[str, Any]) -> None:
        self.number = number
        self.name: str | None = item.get("name") or None
        self.said = False  # Its arguments came, or were said to be none.
        self._custom = item.get("type") == CUSTOM
        self._heard: list[str] = []
        self._closed = False

    def piece(self, delta: str) -> str:
        """Take a piece; give it as a piece of a JSON object."""
        opening = '{"input": "' if self._custom and not self.said else ""
        self.said = True
        self._heard.append(delta)
        return opening + json.dumps(delta, ensure_ascii=False)[1:-1] if self._custom else delta

    def settle(self, form: dict[str, Any]) -> str:
        """
        Take a final form, of the arguments or of the call; give what is missing of the object.

        Raises:
            UpstreamError: hole_in_answer; it is another call, or its arguments are not those that came.
        """
        if self.name and form.get("name") and form["name"] != self.name:
            raise fault("hole_in_answer", detail="a call has another name than before")
        whole = as_text(name_and_arguments(form)[1])
        rest = self._beyond(whole) if whole else ""
        if rest and self._closed and self._custom:
            raise fault("hole_in_answer", detail="the input of a call went on behind its end")
        missing = self.piece(rest) if rest or not self.said else ""
        end = '"}' if self._custom and not self._closed else ""
        self._closed = True
        return missing + end

    def _beyond(self, whole: str) -> str:
        heard = "".join(self._heard)
        try:
            return beyond(heard, whole)
        except UpstreamError:
            # The same object, written otherwise: a gateway has read it and written it again.
            if not self._custom and is_object(heard) and is_object(whole) and json.loads(heard) == json.loads(whole):
                return ""
            raise
