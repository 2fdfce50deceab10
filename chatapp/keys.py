"""The operator's keys, where they are read: what no key can hold is named by its place, never shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from chatapp.unseen import named

# What HTTP lets a header hold without quoting, and what every provider's keys are made of.
_STRANGE: Final = re.compile(r"[^!-~]")
_QUOTES: Final = "\"'`"
_REMEDY: Final = "Copy the key again, as plain text."


def read_key(environ: Mapping[str, str], variable: str | None) -> str | None:
    """Give the key that a variable holds, without white space around it; None if it holds none."""
    return environ.get(variable, "").strip() or None if variable else None


def mistake_in_key(environ: Mapping[str, str], variable: str) -> str | None:
    """Say in a sentence why the key in a variable cannot be sent; None if it can, or if there is none."""
    value = environ.get(variable, "")
    key = value.strip()
    strange = _STRANGE.search(key)
    if strange is not None:
        place = value.index(key) + strange.start() + 1
        return f"{variable} cannot be used as a key: character {place} is {named(strange[0])}. {_REMEDY}"
    if len(key) > 1 and key[0] == key[-1] and key[0] in _QUOTES:
        return f"{variable} cannot be used as a key: it stands in quotation marks. {_REMEDY}"
    return None
