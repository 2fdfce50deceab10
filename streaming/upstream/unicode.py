"""Only valid Unicode leaves an adapter."""

from __future__ import annotations

import re
from typing import Final

REPLACEMENT: Final = "\ufffd"
_HIGH: Final = re.compile("[\ud800-\udbff]$")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# NUL too: PostgreSQL stores none, and CommonMark asks for the same replacement.
_INVALID: Final = re.compile("[\ud800-\udfff\0]")


class Surrogates:
    """
    Makes one channel's text valid.

    JSON can hold half of a surrogate pair, and services that cut UTF-16 do send halves. Halves of
    neighbouring pieces are joined; a half that stays alone becomes U+FFFD.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """Give what is certain; the first half of a pair at the end is held back."""
        if not self._held and (_INVALID.search(text) is None):
            return text
        text = self._held + text
        self._held = ""
        if _HIGH.search(text):
            text, self._held = text[:-1], text[-1]
        return valid(text)

    def finish(self) -> str:
        """Give what was held back: a replacement character, or nothing."""
        held, self._held = self._held, ""
        return REPLACEMENT if held else ""


def valid(text: str) -> str:
    """Join the halves of pairs that meet, and replace what is no character."""
    if _INVALID.search(text) is None:
        return text
    return _INVALID.sub(REPLACEMENT, _PAIR.sub(_join, text))


def _join(pair: re.Match[str]) -> str:
    return pair.group().encode("utf-16-le", "surrogatepass").decode("utf-16-le")
