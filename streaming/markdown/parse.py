"""Text → top-level blocks of tokens. Inline text is parsed later, and only of blocks that are shown."""

from __future__ import annotations

from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore, inline, text_join
from markdown_it.token import Token

from streaming.boundary import is_blank
from streaming.markdown.addresses import bare_address
from streaming.markdown.definitions import References, paragraph_of
from streaming.markdown.formulas import formula, hold
from streaming.markdown.inline import InlineParser
from streaming.markdown.links import is_allowed
from streaming.markdown.lists import keep_numbers
from streaming.markdown.tables import bounded_table
from streaming.markdown.write import HtmlWriter


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


def parse_blocks(lines: list[str], references: References, *, growing: bool = False) -> list[TopBlock]:
    """
    Parse block structure; link reference definitions are added to `references`.

    Lines end in `\\n`. Where a top-level block begins, the parser knows nothing of what came
    before, so parsing from there gives the same blocks as parsing the whole text. While the text is
    `growing`, a formula that has not ended keeps all lines behind it in its block.
    """
    tokens: list[Token] = []
    _PARSER.block.parse("".join(lines), _PARSER, {"references": references, "growing": growing}, tokens)
    blocks: list[TopBlock] = []
    first = 0
    for i, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            start, end = tokens[first].map or [0, 0]
            blocks.append(TopBlock(tokens[first : i + 1], start, end))
            first = i + 1
    return blocks


def unused_definitions(lines: list[str], references: References) -> list[TopBlock]:
    """Give a block for each definition in `lines` that nothing used so far."""
    return [TopBlock(paragraph_of(lines[start:end]), start, end) for start, end in references.unused()]


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


def parse_inline(block: TopBlock, references: References, *, growing: bool = False) -> None:
    """Parse the inline text of a block in place. The end of a `growing` block may stand inside a formula."""
    texts = [token.content for token in block.tokens if token.type == "inline"] if growing else []
    environment = {"references": references, "unfinished": texts[-1] if texts else None}
    state = StateCore("", _PARSER, environment, block.tokens)
    inline(state)
    text_join(state)


def write(block: TopBlock, *, coloured: bool) -> str:
    """Give the HTML of a block whose inline text was parsed."""
    block.tokens[0].meta["outermost"] = True
    keep_numbers(block.tokens)
    return str(_PARSER.renderer.render(block.tokens, _PARSER.options, {"coloured": coloured}))


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802
        return is_allowed(url)

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802
        return link  # An address is shown as it came, with its escapes.


def _build_parser() -> MarkdownIt:
    options = {"html": False, "linkify": False, "typographer": False}
    parser = _Parser("js-default", options, renderer_cls=HtmlWriter)
    parser.inline = InlineParser()
    parser.inline.ruler.before("escape", "math", formula)
    parser.inline.ruler.at("linkify", bare_address)
    parser.block.ruler.at("table", bounded_table, {"alt": ["paragraph", "reference"]})
    # Behind all that may end a paragraph, and before what may begin one.
    parser.block.ruler.before("lheading", "math", hold, {"alt": ["paragraph"]})
    return parser


_PARSER = _build_parser()
