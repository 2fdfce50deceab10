"""Text made valid: what cannot be seen, or makes other text be seen in another order, goes.

It is dropped rather than marked. The log, the archive and "copy" keep the text as it came; a
rendering is for reading, and a mark inside code would be copied into an editor. Right-to-left text
needs no controls here, because every block finds its own direction (`dir="auto"`).

What separates words becomes a space, so that no two words run together: a reader loses what cannot be
seen, never what was said. A zero-width space is dropped all the same, since the words on its sides
stand together in every browser.

Applied to the source, so that nothing invisible steers the parser, and once more to the HTML, because
character references (`&#x202e;`) become characters only there.
"""

from __future__ import annotations

import re
import unicodedata

from streaming.unseen import JOINERS, MEANINGLESS, SELECTORS, SEPARATORS, SURROGATES


def clean(text: str) -> str:
    """Drop controls and invisible characters, or put a space for them; the meaning of a line end is never touched."""
    if _SUSPECT.search(text) is None and (text.isascii() or _PILED_MARKS.search(text) is None):
        return text
    text = _SURROGATES.sub("\ufffd", text)
    text = _DROPPED.sub("", text)
    text = _SEPARATORS.sub(" ", _OUTER_SEPARATORS.sub("", text))
    text = _SELECTORS.sub("", text)
    text = _JOINERS.sub("", text)
    return _PILED_MARKS.sub(r"\1", text)


_MARK_CLASS = "".join(
    chr(point)
    for point in (*range(0x300, 0x3100), *range(0xFE20, 0xFE30))
    if unicodedata.category(chr(point)) in ("Mn", "Me")
)
# Vietnamese needs 2, pointed Hebrew and Tibetan up to 6.
_MARKS_KEPT = 8

_SURROGATES = re.compile(f"[{SURROGATES}]")
_SEPARATORS = re.compile(f"[{SEPARATORS}]+")
# At the ends of a line they separate nothing, and a space there could make code of a paragraph, or break a line.
_EDGE = f"[{SEPARATORS}{JOINERS}]"
_OUTER_SEPARATORS = re.compile(f"^{_EDGE}++|(?<!{_EDGE}){_EDGE}++$", re.MULTILINE)
_DROPPED = re.compile(f"[{MEANINGLESS}]")
# A variation selector has a meaning after an emoji, an ideograph or a keycap's digit, and once. A joiner is none of
# them, and may go: what stood behind it would then stand behind something else.
_SELECTORS = re.compile(f"(?<![0-9#*\x80-\u200b\u200e-\ufdff\ufe10-\U0010ffff])[{SELECTORS}]+")
# A joiner has a meaning between letters of some scripts, or emoji; never beside ASCII, and once.
_JOINERS = re.compile(f"(?<![\x80-\U0010ffff])[{JOINERS}]+|[{JOINERS}]+(?![\x80-\U0010ffff])|[{JOINERS}]{{2,}}")
_PILED_MARKS = re.compile(f"([{_MARK_CLASS}]{{{_MARKS_KEPT}}})[{_MARK_CLASS}]+")
# One class alone is searched several times as fast as alternatives.
_SUSPECT = re.compile(f"[{SURROGATES}{SEPARATORS}{MEANINGLESS}{JOINERS}{SELECTORS}]")
