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
            cells = _cells(mdTrim(getLine(state, token.map[0])), more_than=columns)
            if len(cells) > columns:
                state.tokens[i + 3 * columns - 1].content = mdTrim("|".join(cells[columns - 1 :]))


def _cells(row: str, *, more_than: int) -> list[str]:
    """Give the cells of a row; none if a look at its bars tells that it has no more than so many."""
    if row.count("|") + 1 - row.startswith("|") - row.endswith("|") <= more_than:
        return []
    cells = _split(row)
    return cells[not cells[0] : len(cells) - (not cells[-1])]


def _split(row: str) -> list[str]:
    return [with_bars_shown(cell) for cell in escapedSplit(with_bars_hidden(row))]


# 256 x 256 cells can be asked for with 1.5 kB of text. A row may lack cells, but not all of them always.
_MAX_AUTOCOMPLETED_CELLS = 128
# Past it, parsing costs more than the cells are worth; no one reads 64 columns in a pane.
_MAX_COLUMNS = 64
# The parser's own rule with a lower limit and our cells: a copy, because both are globals of its module.
_table = types.FunctionType(
    table.__code__,
    {**table.__globals__, "MAX_AUTOCOMPLETED_CELLS": _MAX_AUTOCOMPLETED_CELLS, "escapedSplit": _split},
)
