"""The signing key of an installation that was given none: made once, kept where only its user can read it."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path


def kept_key(path: Path) -> str:
    """
    Give the key in `path`; make it, and its folder, the first time.

    Several may start at once. Each writes a file of its own, and a hard link, which
    fails where the name is taken, decides whose key all of them read.
    """
    with suppress(FileNotFoundError):
        return path.read_text(encoding="ascii")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(64))
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    return path.read_text(encoding="ascii")
