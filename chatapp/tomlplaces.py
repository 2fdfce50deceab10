"""Where in a catalogue file a key stands. The TOML parser does not say, so it is found by its look. Pure."""

from __future__ import annotations

import re
from typing import Final

_HEAD: Final = re.compile(r"\s*\[\[\s*models\s*\]\]")
_KEY: Final = re.compile(r"\s*(\[\s*models\.)?\"?([\w.-]+)\"?\s*(?:=|\])")


def line_of(source: str, number: int | None, key: str) -> int:
    """
    Give the line, from 1, of a dotted key in the model of this number, from 0.

    Where the key does not stand by itself it is the line of the table around it, else the model's head.
    Without a number it is a key outside all models.
    """
    lines = source.splitlines()
    heads = [at for at, line in enumerate(lines) if _HEAD.match(line)]
    if number is None or number >= len(heads):
        mark = re.compile(rf"\W*{re.escape(key)}\b")
        return next((at for at, line in enumerate(lines, start=1) if mark.match(line)), 1)
    end = heads[number + 1] if number + 1 < len(heads) else len(lines)
    return _within(lines[:end], heads[number], key) + 1


def _within(lines: list[str], head: int, key: str) -> int:
    section, best = "", head
    for at in range(head + 1, len(lines)):
        found = _KEY.match(lines[at])
        if found is None:
            continue
        name = found[2] if found[1] or not section else f"{section}.{found[2]}"
        section = name if found[1] else section
        if key == name:
            return at
        if key.startswith(f"{name}."):
            best = at
    return best
