"""Text → top-level blocks of tokens. Inline text is parsed later, and only of blocks that are shown."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any, TypeAlias

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_core import StateCore, inline, text_join
from markdown_it.token import Token

from streaming.boundary import is_blank
from streaming.markdown.inline import InlineParser
from streaming.markdown.links import is_allowed
from streaming.markdown.write import HtmlWriter

References: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TopBlock:
    """One top-level block: its tokens, and its lines `start` to `end` (exclusive) of the text parsed."""

    tokens: list[Token]
    start: int
    end: int

    def is_open_fence(self) -> bool:
        """Say whether this is a code fence whose closing line has not come."""
        fence = self.tokens[0]
        return fence.type == "fence" and self.end - self.start < fence.content.count("\n") + 2


def parse_blocks(lines: list[str], references: References) -> list[TopBlock]:
    """
    Parse block structure; link reference definitions are added to `references`.

    Lines end in `\\n`. Where a top-level block begins, the parser knows nothing of what came
    before, so parsing from there gives the same blocks as parsing the whole text.
    """
    tokens: list[Token] = []
    _PARSER.block.parse("".join(lines), _PARSER, {"references": references}, tokens)
    blocks: list[TopBlock] = []
    first = 0
    for i, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            start, end = tokens[first].map or [0, 0]
            blocks.append(TopBlock(tokens[first : i + 1], start, end))
            first = i + 1
    return blocks


def is_closed(block: TopBlock, lines: list[str]) -> bool:
    """Say whether no further line can change the last block of `lines`."""
    kind = block.tokens[0].type
    if kind in ("heading_open", "hr"):
        # The line after a heading with a bar in it may make both a table.
        return "|" not in lines[block.end - 1] or block.end < len(lines)
    if kind == "fence":
        return not block.is_open_fence()
    followed_by_blank = block.end < len(lines) and is_blank(lines[block.end])
    return kind in ("paragraph_open", "table_open", "blockquote_open") and followed_by_blank


def parse_inline(block: TopBlock, references: References) -> None:
    """Parse the inline text of a block in place."""
    state = StateCore("", _PARSER, {"references": references}, block.tokens)
    inline(state)
    text_join(state)


def write(block: TopBlock, *, coloured: bool) -> str:
    """Give the HTML of a block whose inline text was parsed."""
    block.tokens[0].meta["outermost"] = True
    return str(_PARSER.renderer.render(block.tokens, _PARSER.options, {"coloured": coloured}))


# 256 x 256 cells can be asked for with 1.5 kB of text. A row may lack cells, but not all of them always.
_MAX_AUTOCOMPLETED_CELLS = 128
# Past it, parsing costs more than the cells are worth; no one reads 64 columns in a pane.
_MAX_COLUMNS = 64


def _bounded_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    line = state.src[state.bMarks[start] : state.eMarks[start]]
    return line.count("|") <= _MAX_COLUMNS + 1 and _table(state, start, end, silent)


# The parser's own rule with a lower limit: a copy, because the limit is a global of its module.
_table = types.FunctionType(table.__code__, {**table.__globals__, "MAX_AUTOCOMPLETED_CELLS": _MAX_AUTOCOMPLETED_CELLS})


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802
        return is_allowed(url)


def _build_parser() -> MarkdownIt:
    options = {"html": False, "linkify": False, "typographer": False}
    parser = _Parser("js-default", options, renderer_cls=HtmlWriter)
    parser.inline = InlineParser()
    parser.block.ruler.at("table", _bounded_table, {"alt": ["paragraph", "reference"]})
    return parser


_PARSER = _build_parser()
