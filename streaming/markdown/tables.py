"""Tables within bounds, in which bars of formulas divide no cells and no cell of a row is lost."""

from __future__ import annotations

import types

from markdown_it.common.utils import mdTrim
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_block.table import escapedSplit, getLine

from streaming.markdown.formulas import with_bars_hidden, with_bars_shown


def bounded_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if getLine(state, start).count("|") > _MAX_COLUMNS + 1:
        return False
    first = len(state.tokens)
    found: bool = _table(state, start, end, silent)
    if found and not silent:
        _keep_all_cells(state, first)
    return found


def _keep_all_cells(state: StateBlock, first: int) -> None:
    """Give the last cell of a row what GFM drops: what stands behind as many cells as the head has."""
    columns = sum(token.type == "th_open" for token in state.tokens[first:])
    for i in range(first, len(state.tokens)):
        token = state.tokens[i]
        if token.type == "tr_open" and token.map:
            line = mdTrim(getLine(state, token.map[0]))
            # A row of as many cells has one bar more at most.
            if line.count("|") > columns:
                cells = _cells(line)
                if len(cells) > columns:
                    state.tokens[i + 3 * columns - 1].content = mdTrim("|".join(cells[columns - 1 :]))


def _cells(line: str) -> list[str]:
    cells = _split(line)
    return cells[cells[0] == "" : len(cells) - (len(cells) > 1 and cells[-1] == "")]


def _split(line: str) -> list[str]:
    return [with_bars_shown(cell) for cell in escapedSplit(with_bars_hidden(line))]


# 256 x 256 cells can be asked for with 1.5 kB of text. A row may lack cells, but not all of them always.
_MAX_AUTOCOMPLETED_CELLS = 128
# Past it, parsing costs more than the cells are worth; no one reads 64 columns in a pane.
_MAX_COLUMNS = 64
# The parser's own rule with a lower limit and our cells: a copy, because both are globals of its module.
_table = types.FunctionType(
    table.__code__,
    {**table.__globals__, "MAX_AUTOCOMPLETED_CELLS": _MAX_AUTOCOMPLETED_CELLS, "escapedSplit": _split},
)
