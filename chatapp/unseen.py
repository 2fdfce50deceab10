"""Characters that nobody sees, or that make other text be seen in another order or on another line. Pure."""

from __future__ import annotations

import re
from typing import Final

# Controls, line and paragraph separators, format characters (bidi, zero-width, tags), halves of surrogate pairs, and
# what Unicode calls default-ignorable.
UNSEEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    r"""Write each of them as Python would (`\n`, `\x1b`, `\u202e`): the text is one line then, and hides nothing."""
    return UNSEEN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")
