"""The signing key of an installation that was given none: made once, kept where only its user can read it."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from chatapp.env import secret_in


def kept_key(path: Path) -> str:
    """
    Give the key in `path`; make it, and its folder, the first time.

    Raises:
        OSError: it cannot be read or made.
        ImproperlyConfigured: what stands there is no key, as after a disk was full or somebody edited it.
    """
    if not path.exists():
        _make(path)
    return secret_in(path, "The key that signs sessions is kept in")


def _make(path: Path) -> None:
    """
    Write a new key. Several may do so at once.

    Each writes a file of its own, and a hard link, which fails where the name is taken, decides whose key all of
    them read.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(64))
            file.flush()
            # A name that survives a power cut without what it names would stop every later start.
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
