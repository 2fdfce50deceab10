"""
Borders around other people's text in a Markdown document of ours. Pure.

A text stands in a quote, where it is still rendered as Markdown: a fence, a list, a heading or a rule of its own ends
with the quote at the latest. Some things reach beyond any quote: raw HTML (an open comment hides the rest of the
page), definitions of links and footnotes (they hold for the whole document), Obsidian's comments. A text with any of
these stands as source in a code fence that is longer than every run of backticks in it. Either way no character of
it is changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from streaming.markdown.clean import clean

# Of Markdown, and no other: splitlines() would also break a prompt at U+2028.
_LINE_END = re.compile(r"\r\n?|\n")
# What must be there before anything can reach out; without it there is no need to look closer.
_SUSPECT = re.compile(r"<[A-Za-z/!?]|\]:|%%")
_REACHES_OUT = re.compile(r"\[\^[^\]\n]*\]:|%%")
_HTML = ("html_block", "html_inline")
# Parsing takes about a second for ten times as much.
_MAX_PARSED = 100_000
# Other parsers know no such limit, so what nests deeper is not believed to be harmless.
_MAX_NESTING = 60
_PARSERS = [MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING + 20}).enable(rules) for rules in ([], ["table"])]
_MARKS = re.compile(r"([\\`*_{}\[\]<>()#&~|$^%!=])")


def bordered(text: str) -> str:
    """Give a text as a quote, or as source in a fence, that nothing in it can leave."""
    lines = _LINE_END.split(text)
    quote = "\n".join(f"> {line}" if line else ">" for line in lines)
    if _SUSPECT.search(text) is None or _stays_inside(quote):
        return quote
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}markdown", *lines, fence])


def plain(text: str) -> str:
    """Give a name of others on one line, without anything unseen and with no meaning as Markdown."""
    return _MARKS.sub(r"\\\1", one_line(text))


def one_line(text: str) -> str:
    return clean(" ".join(text.split())).strip()


def _stays_inside(quote: str) -> bool:
    if len(quote) > _MAX_PARSED:
        return False
    for parser in _PARSERS:
        found: dict[str, object] = {}
        tokens = parser.parse(quote, found)
        if found.get("references") or any(map(_reaches_out, _all(tokens))):
            return False
    return True


def _reaches_out(token: Token) -> bool:
    is_too_deep = token.level > _MAX_NESTING
    return token.type in _HTML or is_too_deep or (token.type == "inline" and bool(_REACHES_OUT.search(token.content)))


def _all(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from token.children or ()
