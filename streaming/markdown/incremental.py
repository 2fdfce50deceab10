"""The growing text: what of it is sealed, what is open, and when to look again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

from streaming.boundary import Fence, fence_opened_by, is_blank
from streaming.markdown.definitions import References
from streaming.markdown.lines import Lines
from streaming.markdown.pace import Pace
from streaming.markdown.parse import TopBlock, is_closed, parse_blocks
from streaming.markdown.sanitize import sanitize
from streaming.markdown.seal import MAX_BLOCK, Allowance, preview, seal, seal_all
from streaming.markdown.shape import Shape, may_be_table_head, may_begin_and_end, shape_of
from streaming.markdown.write import fence_html


@dataclass(frozen=True, slots=True)
class Rendered:
    """
    One block's HTML, as a view carries it.

    `length`: blocks 0…index show that many code points of the text; the last of a batch says what is
    shown. Empty HTML takes the block away.
    """

    index: int
    html: str
    sealed: bool
    length: int


class BlockRenderer:
    """
    Renders one growing text. `feed` it, ask for `views` when they are `due`, and `finish` it once.

    Times are milliseconds by any one clock. The tail is the text behind the last sealed block; only
    the tail is parsed.
    """

    def __init__(self) -> None:
        self._text = Lines()
        self._pace = Pace()
        self._allowance = Allowance()
        self._references = References()  # Those defined in sealed text,
        self._known = 0  # and how many they are.
        self._html: list[str] = []  # What is on the page, by index.
        self._sealed = 0  # So many of them, from the first, are sealed.
        self._shown = 0
        self._top = 0  # The tail's first line.
        self._tail_size = 0
        self._shape = Shape()  # Of the tail's first block.
        self._ripe = False  # A line has come that may have ended a block.
        self._news = False  # A line has come that the open block does not show.
        self._fence: Fence | None = None  # The tail is this fence, which has not been closed.

    @property
    def parsed(self) -> int:
        """How many code points were given to the parser before `finish`."""
        return self._pace.parsed

    def feed(self, text: str) -> None:
        """Append text. Nothing is rendered."""
        self._pace.grew(len(text))
        known = len(self._text.all)
        for at, line in enumerate(self._text.feed(text), known):
            self._note(at, line)

    def due(self, now_ms: int) -> bool:
        """Say whether `views` has something to do."""
        if not self._pace.may_parse(self._tail_size):
            return False
        return self._ripe or self._may_show(now_ms)

    def views(self, now_ms: int) -> list[Rendered]:
        """Seal what has ended; show the open block anew if it is time."""
        if not self.due(now_ms):
            return []
        show = self._may_show(now_ms)
        lines, blocks = self._parse_tail()
        closed = len(blocks) if blocks and is_closed(blocks[-1], lines) else max(0, len(blocks) - 1)
        self._fence = None
        rendered = self._seal(blocks, closed, lines)
        index = self._sealed + closed
        if closed < len(blocks):
            rendered += self._open(index, blocks[closed], lines, now_ms, show=show)
        else:
            rendered += self._nothing_open(index)
        self._advance(blocks, closed, lines)
        return self._put(rendered)

    def finish(self) -> list[Rendered]:
        """
        Render what is left, the line that is not complete included; everything is sealed then.

        Only a link reference definition reaches back into sealed text. If there is one, the whole
        text is rendered again, and blocks with other HTML than before are given again; definitions
        that no link uses come behind them.
        """
        self._text.flush()
        top, first = self._top, self._sealed
        blocks = parse_blocks(self._text.all[top:], self._references)
        if self._references:
            top, first, self._allowance, self._references = 0, 0, Allowance(), References()
            blocks = parse_blocks(self._text.all, self._references)
        return self._put(self._settle(blocks, top, first))

    def _note(self, at: int, line: str) -> None:
        """Guess what a new line means; blank lines before a block belong to none."""
        if at == self._top and is_blank(line):
            self._top += 1
            return
        self._tail_size += len(line)
        self._news = True
        if self._fence is not None:
            self._ripe |= self._fence.closed_by(line)
        elif at == self._top:
            self._shape = shape_of(line)
            self._ripe |= may_begin_and_end(line)
        else:
            self._ripe |= self._shape.may_end(line, after_blank=is_blank(self._text.all[at - 1]))

    def _may_show(self, now_ms: int) -> bool:
        size = self._tail_size
        return self._news and self._fence is None and size <= MAX_BLOCK and self._pace.may_show(size, now_ms)

    def _parse_tail(self) -> tuple[list[str], list[TopBlock]]:
        self._pace.parse(self._tail_size)
        self._ripe = False
        lines = self._text.all[self._top :]
        return lines, parse_blocks(lines, self._references, growing=True)

    def _seal(self, blocks: list[TopBlock], closed: int, lines: list[str]) -> list[Rendered]:
        if closed:
            self._pace.new_block()
        return [
            Rendered(
                self._sealed + i,
                seal(block, lines, self._references, self._allowance),
                sealed=True,
                length=self._end(blocks, i, lines, self._top),
            )
            for i, block in enumerate(blocks[:closed])
        ]

    def _open(self, index: int, block: TopBlock, lines: list[str], now_ms: int, *, show: bool) -> list[Rendered]:
        if block.is_open_fence():
            return [self._open_fence(index, block, lines)]
        if not show:
            return []
        self._news = False
        if may_be_table_head(lines[block.start :]):
            return []
        html = preview(block, lines, self._references, self._allowance)
        self._pace.show(self._tail_size, html, now_ms)
        return [Rendered(index, html, sealed=False, length=self._text.ends[-1])]

    def _open_fence(self, index: int, block: TopBlock, lines: list[str]) -> Rendered:
        """Open a code block for the tail to stand in; it is not looked at again before it closes."""
        self._fence = fence_opened_by(lines[block.start])
        html = sanitize(fence_html(block.tokens[0].info, "", in_colour=False), twice=False)
        return Rendered(index, html, sealed=False, length=self._text.ends[self._top + block.start])

    def _nothing_open(self, index: int) -> list[Rendered]:
        """What was shown as open may have become a link reference definition, which shows nothing."""
        self._news = False
        shown = any(self._html[index:])
        return [Rendered(index, "", sealed=False, length=self._text.ends[-1])] if shown else []

    def _advance(self, blocks: list[TopBlock], closed: int, lines: list[str]) -> None:
        """Begin the tail at the first block that is not sealed, and forget what was defined in it."""
        if closed < len(blocks):
            begin = blocks[closed].start
        elif blocks:
            begin = _after_blanks(blocks[-1].end, lines)
        else:
            # Only definitions; a blank line ends the last of them.
            begin = len(lines) if is_blank(lines[-1]) else 0
        new = len(self._references) - self._known
        for label in list(islice(reversed(self._references), new)):
            if self._references[label]["map"][0] >= begin:
                del self._references[label]
        self._known = len(self._references)
        self._top += begin
        self._tail_size = sum(map(len, lines[begin:]))
        self._shape = shape_of(lines[begin]) if begin < len(lines) else Shape()

    def _settle(self, blocks: list[TopBlock], top: int, first: int) -> list[Rendered]:
        """Seal the blocks from index `first` on; leave out those that are on the page already."""
        lines, total, shown = self._text.all[top:], self._text.length, self._shown
        rendered = []
        htmls = seal_all(blocks, lines, self._references, self._allowance)
        for i, html in enumerate(htmls):
            index, end = first + i, self._end(blocks, i, lines, top) if i < len(blocks) else total
            if index >= self._sealed or html != self._html[index]:
                # While later blocks stand, no less than now is shown.
                rendered.append(Rendered(index, html, True, end if index >= len(self._html) - 1 else max(end, shown)))
        count = first + len(htmls)
        rendered += [Rendered(i, "", sealed=True, length=shown) for i in range(count, len(self._html)) if self._html[i]]
        if not rendered and shown < total:
            rendered = [Rendered(max(count - 1, 0), self._html[count - 1] if count else "", sealed=True, length=total)]
        return [*rendered[:-1], *(replace(last, length=total) for last in rendered[-1:])]

    def _end(self, blocks: list[TopBlock], i: int, lines: list[str], top: int) -> int:
        """Where a block ends in the text: where the next one begins, or behind its blank lines."""
        after = blocks[i + 1].start if i + 1 < len(blocks) else _after_blanks(blocks[i].end, lines)
        return self._text.ends[top + after - 1]

    def _put(self, rendered: list[Rendered]) -> list[Rendered]:
        for each in rendered:
            self._html[each.index : each.index + 1] = [each.html]
            if each.sealed:
                self._sealed = max(self._sealed, each.index + 1)
            self._shown = each.length
        return rendered


def _after_blanks(line: int, lines: list[str]) -> int:
    while line < len(lines) and is_blank(lines[line]):
        line += 1
    return line
