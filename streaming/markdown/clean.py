"""Text made valid: what cannot be seen, or makes other text be seen in another order, goes.

It is dropped rather than marked. The log, the archive and "copy" keep the text as it came; a
rendering is for reading, and a mark inside code would be copied into an editor. Right-to-left text
needs no controls here, because every block finds its own direction (`dir="auto"`).

Applied to the source, so that nothing invisible steers the parser, and once more to the HTML, because
character references (`&#x202e;`) become characters only there.
"""

from __future__ import annotations

import re
import unicodedata


def clean(text: str) -> str:
    """Drop controls and invisible characters; the meaning of a line end is never touched."""
    if _SUSPECT.search(text) is None and (text.isascii() or _PILED_MARKS.search(text) is None):
        return text
    text = _SURROGATES.sub("\ufffd", text)
    text = _DROPPED.sub("", text)
    text = _SELECTORS.sub("", text)
    text = _JOINERS.sub("", text)
    return _PILED_MARKS.sub(r"\1", text)


# C0 without tab and line feed (a lone CR is a line end and handled before), C1, and all that Unicode
# calls default-ignorable, tags and supplementary variation selectors included; bidi controls;
# interlinear annotation; line and paragraph separators, which are line ends to some readers only.
_DROPPED_CLASS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufdd0-\ufdef\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_JOINER_CLASS = "\u200c\u200d"
_SELECTOR_CLASS = "\ufe00-\ufe0f"
_MARK_CLASS = "".join(
    chr(point)
    for point in (*range(0x300, 0x3100), *range(0xFE20, 0xFE30))
    if unicodedata.category(chr(point)) in ("Mn", "Me")
)
# Vietnamese needs 2, pointed Hebrew and Tibetan up to 6.
_MARKS_KEPT = 8

_SURROGATES = re.compile("[\ud800-\udfff]")
_DROPPED = re.compile(f"[{_DROPPED_CLASS}]")
# A variation selector has a meaning after an emoji, an ideograph or a keycap's digit, and once. A joiner is none of
# them, and may go: what stood behind it would then stand behind something else.
_SELECTORS = re.compile(f"(?<![0-9#*\x80-\u200b\u200e-\ufdff\ufe10-\U0010ffff])[{_SELECTOR_CLASS}]+")
# A joiner has a meaning between letters of some scripts, or emoji; never beside ASCII, and once.
_JOINERS = re.compile(
    f"(?<![\x80-\U0010ffff])[{_JOINER_CLASS}]+|[{_JOINER_CLASS}]+(?![\x80-\U0010ffff])|[{_JOINER_CLASS}]{{2,}}"
)
_PILED_MARKS = re.compile(f"([{_MARK_CLASS}]{{{_MARKS_KEPT}}})[{_MARK_CLASS}]+")
# One class alone is searched several times as fast as alternatives.
_SUSPECT = re.compile(f"[\ud800-\udfff{_DROPPED_CLASS}{_JOINER_CLASS}{_SELECTOR_CLASS}]")
