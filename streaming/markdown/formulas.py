r"""Formulas: `\(…\)`, `\[…\]`, `$…$`, `$$…$$` and `\begin{…}…\end{…}`. Nothing in them is Markdown.

A formula becomes a token `math` whose content is its source with the delimiters, and is shown as it came.

Dollars follow pandoc's rule, since most of them are money: inside the opening and the closing one stands no space, no
digit follows the closing one, and the next dollar is the closing one or there is none. Besides, no ASCII letter or
digit stands before the opening one (`US$5 or US$6`), and no backtick inside. Delimiters around nothing are escapes.

The lines of a formula of several lines go on with its paragraph, whatever they look like: `=` underlines no heading
and `-` begins no list. A formula ends before a blank line and within its item or quote, or it is none.
Models often give a formula in an item no indentation: one that begins so, in the item's paragraph, may end so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline


def formula(state: StateInline, silent: bool) -> bool:
    """Parse a formula: a rule of inline text. Runs in linear time: an attempt ends where the next one may begin."""
    if state.src[state.pos] not in "\\$":
        return False
    source = _formula_at(state)
    if not source:
        return False
    if not silent:
        state.push("math", "", 0).content = source
    state.pos += len(source)
    return True


def is_display(source: str) -> bool:
    """Say whether a formula's delimiters ask for lines of its own."""
    return source.startswith(("\\[", "$$", _BEGIN))


def hold(state: StateBlock, line: int, end_line: int, silent: bool) -> bool:  # noqa: ARG001
    """
    Keep the lines of a formula in its paragraph: a rule of blocks that never matches.

    It is asked about each line of a paragraph that nothing else begins at. The parser takes the lines that follow in
    the formula for indented ones, which never end a paragraph.
    """
    pos, last = state.bMarks[line], state.eMarks[line]
    if state.src.find("\\", pos, last) < 0 and state.src.find("$$", pos, last) < 0:
        return False
    while found := _OPENS_OR_ESCAPES.search(state.src, pos, last):
        pos = found.end()
        if found["opens"] and (end := _end_of_lines(state, line, found.start())):
            while state.eMarks[line] < end:
                line += 1
                state.sCount[line] = state.blkIndent + _CONTINUES
            pos, last = end, state.eMarks[line]
    return False


def with_bars_hidden(row: str) -> str:
    """Put a character that no text holds for the bars in the formulas of a table's row, which divide no cells."""
    if "|" not in row or not ("$" in row or "\\" in row):
        return row
    return _FORMULA_OR_ESCAPE.sub(lambda found: found[0].replace("|", _BAR) if found["formula"] else found[0], row)


def with_bars_shown(cell: str) -> str:
    return cell.replace(_BAR, "|")


def _formula_at(state: StateInline) -> str:
    """Give the formula that begins where the parser stands. One that still grows may lack its end."""
    src, pos = state.src, state.pos
    if found := _FORMULA.match(src, pos, state.posMax):
        return found[0] if found[0].strip(_BLANK) else ""
    if not src.startswith(_BEGIN, pos):
        return _unfinished(state)
    known: dict[str, dict[int, int]] = state.env.setdefault("environments", {})
    if src not in known:
        known[src] = _environments(src, 0, len(src))
    end = known[src].get(pos, state.posMax + 1)
    return src[pos:end] if end <= state.posMax else _unfinished(state)


def _unfinished(state: StateInline) -> str:
    if state.src is not state.env.get("unfinished") or state.posMax < len(state.src):
        return ""
    found = _UNFINISHED.match(state.src, state.pos)
    return found[0] if found else ""


@dataclass(frozen=True, slots=True)
class _Region:
    """Lines that a formula may span: up to a blank one, and inside one item or quote."""

    start: int
    end: int
    environments: dict[int, int]


def _end_of_lines(state: StateBlock, line: int, pos: int) -> int:
    """Find where the formula at `pos` ends; 0 if it does not. In a text that still grows it may yet."""
    region = _region(state, line)
    limit = state.eMarks[region.end - 1]
    if state.src.startswith(_BEGIN, pos):
        end = region.environments.get(pos, 0)
    else:
        found = _FORMULA.match(state.src, pos, limit)
        end = found.end() if found else 0
    grows = state.env.get("growing") and region.end == len(state.bMarks) - 1
    return limit if grows and not end else end


def _region(state: StateBlock, line: int) -> _Region:
    """Give the lines from this one on; each is walked over twice at the most for all formulas that begin in them."""
    known: dict[Any, _Region] = state.env.setdefault("regions", {})
    indent = state.blkIndent if state.sCount[line] >= state.blkIndent else 0
    key = (indent, state.lineMax)
    region = known.get(key)
    if region is None or not region.start <= line < region.end:
        end = line + 1
        while end < state.lineMax and not state.isEmpty(end) and state.sCount[end] >= indent:
            end += 1
        environments = _environments(state.src, state.bMarks[line], state.eMarks[end - 1])
        region = known[key] = _Region(line, end, environments)
    return region


def _environments(text: str, start: int, end: int) -> dict[int, int]:
    """Find where each environment ends, by where it begins. They may stand in each other."""
    open_ones: dict[str, list[int]] = {}
    ends = {}
    for found in _BEGIN_OR_END.finditer(text, start, end):
        begun = open_ones.setdefault(found["name"] or "", [])
        if found["which"] == "begin":
            begun.append(found.start())
        elif found["which"] and begun:
            ends[begun.pop()] = found.end()
    return ends


_BEGIN = "\\begin{"
_CONTINUES = 4  # So far a line must be indented to be no beginning of anything.
_BLANK = "\\()[]$ \t\n"
_BAR = "\0"  # `clean` left none in the text.
# A backslash and what follows it are read together, so that the row break `\\` before `]` closes nothing. An opening
# delimiter of the same kind ends an attempt: TeX allows none inside either.
_PARENTHESES = r"\\\((?:[^\\]|\\[^()])++\\\)"
_BRACKETS = r"\\\[(?:[^\\]|\\[^\[\]])++\\\]"
_IN_TWO_DOLLARS = r"(?:[^$\\]|\\.|\$(?!\$))"
_TWO_DOLLARS = rf"(?<!\$)\$\$(?!\$){_IN_TWO_DOLLARS}++\$\$(?!\$)"
_DOLLARS = r"(?<![A-Za-z0-9$])\$(?![\s$])(?:[^$\\`]|\\[^`])++(?<!\s)\$(?![0-9$])"
_ANY = f"{_PARENTHESES}|{_BRACKETS}|{_TWO_DOLLARS}|{_DOLLARS}"
_FORMULA = re.compile(_ANY, re.DOTALL)
_FORMULA_OR_ESCAPE = re.compile(rf"(?P<formula>{_ANY})|\\.", re.DOTALL)
_UNFINISHED = re.compile(
    rf"(?:\\\[(?:[^\\]|\\[^\[\]])*+|(?<!\$)\$\$(?!\$){_IN_TWO_DOLLARS}*+|\\begin\{{[A-Za-z]+\*?\}}.*+)\\?\Z", re.DOTALL
)
_BEGIN_OR_END = re.compile(r"\\(?:(?P<which>begin|end)\{(?P<name>[A-Za-z]+\*?)\}|.)", re.DOTALL)
_OPENS_OR_ESCAPES = re.compile(r"(?P<opens>\\[\[(]|\\begin\{|(?<!\$)\$\$(?!\$))|\\.|(`++)[^`]*+`++", re.DOTALL)
