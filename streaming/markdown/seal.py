"""One block through the whole pipeline, within its caps; and a whole text, block by block."""

from __future__ import annotations

from markdown_it.token import Token

from streaming.markdown.clean import clean
from streaming.markdown.definitions import References
from streaming.markdown.lines import LINE_END
from streaming.markdown.parse import TopBlock, parse_blocks, parse_inline, unused_definitions, write
from streaming.markdown.sanitize import sanitize
from streaming.markdown.write import plain_html
from streaming.snapshot import Block

# Code points of source. A longer block is no prose; parsing inline text is dear, escaping it is not.
MAX_BLOCK = 65_536
# Levels of lists, quotes and emphasis. bleach takes quadratic time in depth, and no pane shows more.
MAX_DEPTH = 24
MAX_CELLS = 4096
# The parser tries every one of them as the beginning of a link.
MAX_BRACKETS = 2048
# The elements of one block, by its tokens, and its HTML: what bleach can do in half a second.
MAX_TOKENS = 20_000
MAX_HTML = 200_000
# The HTML of a text is at most this many times its source, and a constant, and 32 for each block:
# tables and references could ask for hundreds of times.
MAX_GROWTH = 8
GROWTH_ALLOWANCE = 4096
# A sanitiser has a cost for each block, so a text of nothing but tiny blocks soon gets no more of them.
BLOCK_ALLOWANCE = 512
SIZE_OF_A_BLOCK = 32


class Allowance:
    """How much HTML the next block may have. It depends on the blocks before it, in order, and nothing else."""

    def __init__(self) -> None:
        self._html = GROWTH_ALLOWANCE
        self._blocks = float(BLOCK_ALLOWANCE)

    def limit(self, source: str) -> int:
        """Give the greatest length of HTML; 0 when the block may have no markup at all."""
        return min(MAX_HTML, MAX_GROWTH * len(source) + self._html) if self._blocks > 0 else 0

    def spend(self, source: str, html: str) -> None:
        left = MAX_GROWTH * len(source) + self._html - len(html)
        self._html = max(0, min(GROWTH_ALLOWANCE, left))
        self._blocks += len(source) / SIZE_OF_A_BLOCK - 1


def render(text: str) -> list[Block]:
    """Render a whole text: its top-level blocks, all sealed."""
    lines = clean(LINE_END.sub("\n", text)).splitlines(keepends=True)
    references = References()
    blocks = parse_blocks(lines, references)
    return [Block(html, sealed=True) for html in seal_all(blocks, lines, references, Allowance())]


def seal_all(blocks: list[TopBlock], lines: list[str], references: References, allowance: Allowance) -> list[str]:
    """Seal the blocks up to the end of a text, and behind them definitions that none of them uses."""
    sealed = [seal(block, lines, references, allowance) for block in blocks]
    none = References()
    return sealed + [seal(block, lines, none, allowance) for block in unused_definitions(lines, references)]


def seal(block: TopBlock, lines: list[str], references: References, allowance: Allowance) -> str:
    """Give the final HTML of a block: coloured, through both sanitisers, and counted."""
    source = "".join(lines[block.start : block.end])
    html = _html(block, source, references, allowance.limit(source), sealed=True)
    allowance.spend(source, html)
    return html


def preview(block: TopBlock, lines: list[str], references: References, allowance: Allowance) -> str:
    """Give the HTML of the open block, without what is done once: colours, and the second sanitiser."""
    source = "".join(lines[block.start : block.end])
    return _html(block, source, references, allowance.limit(source), sealed=False)


def _html(block: TopBlock, source: str, references: References, limit: int, *, sealed: bool) -> str:
    if _fits(block, source, limit):
        parse_inline(block, references, growing=not sealed)
        if _inline_fits(block.tokens, limit):
            html = write(block, coloured=sealed)
            if len(html) <= limit:
                return sanitize(html, twice=sealed)
    # Escaped text has no markup that a second sanitiser could judge, and may be long.
    return sanitize(plain_html(source.rstrip("\n")), twice=False)


def _fits(block: TopBlock, source: str, limit: int) -> bool:
    """Judge by what parsing the inline text would cost."""
    cells = sum(token.type == "td_open" for token in block.tokens)
    brackets = sum(token.content.count("[") for token in block.tokens if token.type == "inline")
    return (
        len(source) <= MAX_BLOCK
        and cells <= min(MAX_CELLS, limit // _CELL_COST)
        and brackets <= MAX_BRACKETS
        and max(token.level for token in block.tokens) <= MAX_DEPTH
    )


def _inline_fits(tokens: list[Token], limit: int) -> bool:
    """Judge by what writing and sanitising would cost."""
    count, links = 0, 0
    for token in tokens:
        count += _FENCE_COST if token.type in ("fence", "code_block") else 1
        for child in token.children or ():
            if token.level + child.level > MAX_DEPTH:
                return False
            count += 1
            links += _LINK_COST + 2 * len(str(child.attrGet("href") or "")) if child.type == "link_open" else 0
    return count <= MAX_TOKENS and links <= limit


# What a link adds to its text and twice its address: about the length of its other attributes.
_LINK_COST = 100
_CELL_COST = len("<td></td>\n")
# bleach takes quadratic time in code blocks, so they count as so many tokens.
_FENCE_COST = 10
