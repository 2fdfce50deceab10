"""Says of HTML that bleach would give it back as it is, for a small part of what asking bleach costs (decision 10).

A "no" costs time only. A "yes" is for one block in the plainest words of our allow-list, every element closed where it
must be. Links and tables are never among them.
"""

from __future__ import annotations

import re

from streaming.markdown.colour import PREFIX, TOKEN_CLASSES


def is_unchanged_by_bleach(html: str) -> bool:
    """Say yes only if bleach gives back the very same text. Takes linear time: no pattern is tried twice on a text."""
    return _CHARACTERS.fullmatch(html) is not None and _BLOCK.fullmatch(html) is not None


# Tab, line feed, and what is neither another control nor a surrogate nor one of Unicode's first noncharacters.
_CHARACTERS = re.compile("[\t\n -~\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]*+")
_TEXT = "[^<>&]++|&(?:amp|gt|lt|nbsp);"
_FORMULA = f'<span class="math(?: math-display)?">(?:{_TEXT})*+</span>'
_WORDS = f"{_TEXT}|<br>|<code>(?:{_TEXT})*+</code>|{_FORMULA}"
_MARKED = "|".join(f"<{tag}>(?:{_WORDS})*+</{tag}>" for tag in ("em", "s", "strong"))
_INLINE = f"(?:{_WORDS}|{_MARKED})*+"

_DIRECTION = '(?: dir="auto")?'
_PARAGRAPH = f"<p{_DIRECTION}>{_INLINE}</p>\n"
_HEADING = f"<h(?P<level>[1-6]){_DIRECTION}>{_INLINE}</h(?P=level)>\n"
_COLOURED = f'<span class="{PREFIX}[{"".join(TOKEN_CLASSES)}]">(?:{_TEXT})*+</span>'
_LANGUAGE = '(?: class="language-[a-z0-9_+#.-]{1,32}")?'
_CAPTION = f'(?:<p class="code-info">(?:{_TEXT})*+</p>\n)?'
_CODE = f"{_CAPTION}<pre><code{_LANGUAGE}>(?:{_TEXT}|{_COLOURED})*+</code></pre>\n"


def _list(depth: int) -> str:
    """Give the pattern of a list that holds lists at most `depth` deep, itself counted."""
    inside = f"{_PARAGRAPH}|{_CODE}" + (f"|{_list(depth - 1)}" if depth > 1 else "")
    begin = f'<(?P<list{depth}>[ou]l)(?:(?<=ol) start="[0-9]{{1,9}}")?{_DIRECTION}>\n'
    number = '(?: value="[0-9]{1,9}")?'
    return f"{begin}(?:<li{number}>{_INLINE}(?:{inside})*+</li>\n)*+</(?P=list{depth})>\n"


_QUOTE = f"<blockquote{_DIRECTION}>\n(?:{_PARAGRAPH})*+</blockquote>\n"
_BLOCK = re.compile(f"{_PARAGRAPH}|{_HEADING}|{_CODE}|{_list(3)}|{_QUOTE}|<hr>\n")
