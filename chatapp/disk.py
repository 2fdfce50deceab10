"""What is done to files in more than one place: a name for what is set aside, and certainty that it is written."""

from __future__ import annotations

import os
import time
from pathlib import Path


def aside_of(path: Path, suffix: str = "") -> Path:
    """
    Give the name under which `path` can be set aside now; nothing else has it.

    What is set aside is never removed by us. So the name says when it was, and is easily found.
    """
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    again = ("", *(f"-{n}" for n in range(2, 100)))
    names = (path.with_name(f"{path.name}.set-aside-{stamp}{one}{suffix}") for one in again)
    return next(name for name in names if not os.path.lexists(name))


def sync(folder: Path) -> None:
    """See that what was made, renamed or removed in a folder outlives a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
