"""Reasoning that a model writes into its text, between tags. Only for models that are known to do so."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

OPEN: Final = "<think>"
CLOSE: Final = "</think>"


class _Place(Enum):
    START = auto()  # Nothing but white space yet: a tag would count here.
    INSIDE = auto()
    CLOSED = auto()  # Behind the closing tag: white space there belongs to neither channel.
    TEXT = auto()  # A tag is now a word like any other.


class ThinkTags:
    """
    Splits text into reasoning and answer.

    A tag counts at the very start of the answer only. Held back is never more than the longest end
    that may begin a tag, so "a < b" flows at once.
    """

    def __init__(self, *, starts_inside: bool = False) -> None:
        self._place = _Place.INSIDE if starts_inside else _Place.START
        self._held = ""

    def feed(self, text: str) -> tuple[str, str]:
        """Give what is certain: reasoning, then answer."""
        if self._place is _Place.TEXT:
            return "", text
        text = self._held + text
        self._held = ""
        if self._place is _Place.START:
            return self._start(text)
        return self._inside(text) if self._place is _Place.INSIDE else ("", self._closed(text))

    def finish(self) -> tuple[str, str]:
        """Give what was held back, to the channel that is open."""
        held, self._held = self._held, ""
        return (held, "") if self._place is _Place.INSIDE else ("", held)

    def _start(self, text: str) -> tuple[str, str]:
        begun = text.lstrip()
        for tag, place in ((OPEN, _Place.INSIDE), (CLOSE, _Place.CLOSED)):
            if begun.startswith(tag):
                self._place = place
                return self.feed(begun.removeprefix(tag))
        if OPEN.startswith(begun) or CLOSE.startswith(begun):
            self._held = text
            return "", ""
        self._place = _Place.TEXT
        return "", text

    def _inside(self, text: str) -> tuple[str, str]:
        reasoning, tag, rest = text.partition(CLOSE)
        if tag:
            self._place = _Place.CLOSED
            return reasoning, self._closed(rest)
        keep = held_length(text, CLOSE)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep], ""

    def _closed(self, text: str) -> str:
        text = text.lstrip()
        if text:
            self._place = _Place.TEXT
        return text


def held_length(text: str, tag: str) -> int:
    """Measure the longest end of `text` that begins `tag`."""
    longest = min(len(text), len(tag) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(tag[:n])), 0)
