"""The parser of inline text, with emphasis as it is meant in scripts without spaces between words.

CommonMark lets `**` open or close emphasis by what stands on its two sides, and takes punctuation for the border of a
word. In `**注意：**请先` it then cannot close, and later stars pair with the wrong ones. The rule is that of the
"CJK-friendly amendments" to CommonMark (github.com/tats-u/markdown-cjk-friendly, specification.md), extended to the
other scripts without spaces: their punctuation forbids nothing, and beside other punctuation their characters allow
what a space allows. `_` stays as it is, and so does all text without such characters.
"""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.common.utils import isMdAsciiPunct, isPunctChar, isWhiteSpace
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned
from markdown_it.token import Token
from markdown_it.utils import EnvType

from streaming.markdown.spaceless import FIRST_SPACELESS, is_spaceless


class InlineParser(ParserInline):
    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        state = _State(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


class _State(StateInline):
    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:  # noqa: N802, N803
        scanned = super().scanDelims(start, canSplitWord)
        if not canSplitWord:
            return scanned
        end = start + scanned.length
        before = self.src[start - 1] if start else " "
        after = self.src[end] if end < self.posMax else " "
        if before < FIRST_SPACELESS and after < FIRST_SPACELESS:
            return scanned
        if start > 1 and "\ufe00" <= before <= "\ufe0e":
            before = _selected(self.src[start - 2], before)
        return Scanned(_may_open(before, after), _may_open(after, before), scanned.length)


def _may_open(outside: str, inside: str) -> bool:
    """Say whether emphasis may open between two characters; it may close where it could open read backwards."""
    if isWhiteSpace(ord(inside)):
        return False
    return not _is_border(inside) or isWhiteSpace(ord(outside)) or _is_border(outside) or is_spaceless(outside)


def _is_border(char: str) -> bool:
    return (isMdAsciiPunct(ord(char)) or isPunctChar(char)) and not is_spaceless(char)


def _selected(char: str, selector: str) -> str:
    """Give what a variation selector makes of a character, as far as it matters: U+FE01 makes curly quotes wide."""
    return "\uff02" if selector == "\ufe01" and char in "‘’“”" else char
