"""Guesses, from single lines, whether a growing block may have ended.

A guess only decides when the parser is asked. A wrong "yes" costs a parse, a wrong "no" a delay.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from streaming.boundary import is_blank


def may_begin_and_end(line: str) -> bool:
    """Say whether the first line of a block may be all of it, or need a view at once (a fence)."""
    return _WHOLE.match(line) is not None


def may_be_table_head(lines: list[str]) -> bool:
    """Say whether this is the first row of what the next line may make a table; until then it is a paragraph."""
    return len(lines) == 1 and lines[0].lstrip(" ").startswith("|")


@dataclass(frozen=True, slots=True)
class Shape:
    """What the first line of a block tells about its end. Text of no other kind: a paragraph or a table."""

    kind: Literal["text", "quote", "list", "indented"] = "text"
    marker: str = ""  # Of a list: what tells it from another list.

    def may_end(self, line: str, *, after_blank: bool) -> bool:
        """Say whether `line` may end the block or begin another."""
        match self.kind:
            case "text":
                return is_blank(line) or _INTERRUPTS.match(line) is not None
            case "quote":
                return is_blank(line) or (_QUOTED.match(line) is None and _INTERRUPTS.match(line) is not None)
            case "indented":
                return not is_blank(line) and _INDENTED.match(line) is None
            case "list":
                return self._may_end_list(line, after_blank=after_blank)

    def _may_end_list(self, line: str, *, after_blank: bool) -> bool:
        # An item's text is indented by two at least; what is indented more may still lie outside, rarely.
        if is_blank(line) or line.startswith(("  ", "\t")):
            return False
        marker = _marker(line)
        if marker:
            return marker != self.marker
        return after_blank or _INTERRUPTS.match(line) is not None


def shape_of(first: str) -> Shape:
    if _INDENTED.match(first):
        return Shape("indented")
    marker = _marker(first)
    if marker:
        return Shape("list", marker)
    return Shape("quote" if _QUOTED.match(first) else "text")


def _marker(line: str) -> str:
    """Give what tells one list from the next: the bullet, or what follows the number. Else nothing."""
    found = None if _RULE.match(line) else _ITEM.match(line)
    return (found["bullet"] or found["after"]) if found else ""


_QUOTED = re.compile(r" {0,3}>")
_INDENTED = re.compile(r" {4}| {0,3}\t")
_RULE = re.compile(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_ITEM = re.compile(r" {0,3}(?:(?P<bullet>[-+*])|[0-9]{1,9}(?P<after>[.)]))(?:[ \t]|$)")
_INTERRUPTS = re.compile(
    r" {0,3}(?:#|>|=+[ \t]*$|-+[ \t]*$|```|~~~|[-*_]{3}|[-+*_](?:[ \t]|$)|[0-9]{1,9}[.)](?:[ \t]|$))"
)
_WHOLE = re.compile(r" {0,3}(?:#|```|~~~|([-*_])[ \t]*(?:\1[ \t]*){2,}$)")
