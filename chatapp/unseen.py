"""Characters that nobody sees, or that make other text be seen in another order or on another line. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from streaming.unseen import JOINERS, MEANINGLESS, SELECTORS, SEPARATORS, SURROGATES

# What Arabic, Kaithi and hieroglyphs put around or under other characters: seen with those, and by itself only in some
# fonts. A rendering keeps them; a log needs none.
_AROUND_OTHERS: Final = "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\U00013430-\U0001343f"
UNSEEN: Final = re.compile(f"[\t\n{SEPARATORS}{MEANINGLESS}{JOINERS}{SELECTORS}{SURROGATES}{_AROUND_OTHERS}]")


def visible(text: str) -> str:
    r"""Write each of them as Python would (`\n`, `\x1b`, `\u202e`): the text is one line then, and hides nothing."""
    return UNSEEN.sub(_escaped, text)


def named(char: str) -> str:
    """Say which character it is, for whoever is to find it in what they wrote."""
    if "\ud800" <= char <= "\udfff":
        return "a byte that is not UTF-8"
    return f"U+{ord(char):04X} {unicodedata.name(char, 'a control character').lower()}"


def _escaped(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")
