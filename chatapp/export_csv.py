"""A conversation as a table for spreadsheets: RFC 4180, one row for each answer, and nothing in it that is computed."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from io import StringIO
from typing import TypeAlias

from chatapp.exported import Answer, Exported, tokens_of
from chatapp.models import Generation, Turn
from chatapp.unseen import UNSEEN

Cell: TypeAlias = str | int | None

COLUMNS = (
    "turn", "prompt", "pane", "model", "model_id", "answer", "state", "whole", "why_not_whole", "finish",
    "first_token_ms", "total_ms", "input_tokens", "output_tokens", "text", "text_sha256",
)  # fmt: skip
# Without it Excel takes UTF-8 for something else.
_BYTE_ORDER_MARK = "\ufeff"
# What a spreadsheet takes for a formula, by OWASP's list, with the other forms of its characters. Blanks and what
# cannot be seen may stand in front of it: programs drop them when they read a file, and some cut at them.
_CUTS = re.compile(r"[\t\r\n]")
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠\ufe62\ufe63\ufe66\ufe6b]")


def csv_of(exported: Exported) -> str:
    table = StringIO(newline="")
    writer = csv.writer(table, quoting=csv.QUOTE_ALL)
    writer.writerow(COLUMNS)
    for number, (turn, answers) in enumerate(exported.turns, start=1):
        writer.writerows(map(_safe, _row(number, turn, answer)) for answer in answers if exported.wants(answer))
    return _BYTE_ORDER_MARK + table.getvalue()


def _row(number: int, turn: Turn, answer: Answer) -> Iterable[Cell]:
    row, tokens = answer.row, tokens_of(answer.row)
    whole = "no" if answer.faults else "yes"
    return (
        number, turn.prompt, answer.pane, answer.label, row.model, row.number, row.state, whole,
        "; ".join(answer.faults), row.finish, _ms(row, "first_token_at"), _ms(row, "ended_at"),
        tokens.get("input"), tokens.get("output"), row.text, row.text_sha256,
    )  # fmt: skip


def _ms(row: Generation, moment: str) -> int | None:
    """Give how long after it was queued something happened."""
    at, queued_at = row.timings.get(moment), row.timings.get("queued_at")
    return None if at is None or queued_at is None else at - queued_at


def _safe(cell: Cell) -> Cell:
    """Put an apostrophe before what would be computed: a spreadsheet then shows it as text."""
    is_computed = isinstance(cell, str) and (_CUTS.match(cell) or _FORMULA.match(UNSEEN.sub("", cell)))
    return f"'{cell}" if is_computed else cell
