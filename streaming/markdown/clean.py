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


# What ends lines or fields to some readers (VT, FF, FS, GS, RS, US, NEL, line and paragraph separators, and a CR that a
# character reference brought in; others are line ends and handled before), what stands between a text and its
# annotation, and fillers that are drawn as a blank.
_SEPARATOR_CLASS = "\x0b-\r\x1c-\x1f\x85\u2028\u2029\u3164\uffa0\ufffa"
# All the rest of C0 and C1, and all else that Unicode calls default-ignorable, tags and supplementary variation
# selectors included; bidi controls; the other marks of annotations; noncharacters.
_DROPPED_CLASS = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e"
    "\u200f\u202a-\u202e\u2060-\u206f\ufdd0-\ufdef\ufeff\ufff0-\ufff9\ufffb\ufffe\uffff"
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
_SEPARATORS = re.compile(f"[{_SEPARATOR_CLASS}]+")
# At the ends of a line they separate nothing, and a space there could make code of a paragraph, or break a line.
_EDGE = f"[{_SEPARATOR_CLASS}{_JOINER_CLASS}]"
_OUTER_SEPARATORS = re.compile(f"^{_EDGE}++|(?<!{_EDGE}){_EDGE}++$", re.MULTILINE)
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
_SUSPECT = re.compile(f"[\ud800-\udfff{_SEPARATOR_CLASS}{_DROPPED_CLASS}{_JOINER_CLASS}{_SELECTOR_CLASS}]")
