"""
What nobody sees of a text, or what makes other text be seen in another order. Pure.

Each is the inside of a class of a regular expression. What is done about them differs: a rendering drops them, the log
and messages to operators show them by their numbers, a key or a name with one is refused.
"""

from __future__ import annotations

from typing import Final

# What ends lines or fields to some readers (VT, FF, FS, GS, RS, US, NEL, line and paragraph separators, and a CR that
# a character reference brought in; others are line ends and handled before), what stands between a text and its
# annotation, and fillers that are drawn as a blank.
SEPARATORS: Final = "\x0b-\r\x1c-\x1f\x85\u2028\u2029\u3164\uffa0\ufffa"
# All the rest of C0 and C1 but tabulator and line end, and all else that Unicode calls default-ignorable, tags and
# supplementary variation selectors included; bidi controls; the other marks of annotations; noncharacters.
MEANINGLESS: Final = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e"
    "\u200f\u202a-\u202e\u2060-\u206f\ufdd0-\ufdef\ufeff\ufff0-\ufff9\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
JOINERS: Final = "\u200c\u200d"
SELECTORS: Final = "\ufe00-\ufe0f"
SURROGATES: Final = "\ud800-\udfff"
