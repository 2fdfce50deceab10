"""Names that a folder may have, and that mean something to a URL, a shell, a command line or a reader of lines."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.chatapp.starting import ROOT

NAMES = (
    "C#", "what?now", "50%25 off", "100%", "a+b&c=[d]", "spa ce", " outer ", "é", "🙂", "quo'te\"s", "back\\slash",
    "$HOME", "-rf", "dot.", "semi;colon", "co:lon", "@t", "~", "new\nline", "tab\there", "file:uri?mode=memory",
)  # fmt: skip


def long_folder(below: Path, length: int = 218) -> Path:
    """Give a folder whose whole path has that many bytes."""
    left = length - len(str(below)) - 1
    first = min(left - 2, 200)
    return below / ("x" * first) / ("y" * (left - first - 1))


def checkout(folder: Path) -> Path:
    """Copy what `manage.py up` needs; a link would lead back to the folder that the tests run in."""
    for part in ("chatapp", "streaming", "static", "templates"):
        shutil.copytree(ROOT / part, folder / part)
    shutil.copy2(ROOT / "manage.py", folder)
    return folder
