"""The state folder is its owner's alone, whichever process makes a file in it first and whatever umask it was given."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

# By how their names begin, but for a dot: what Sidestream keeps in the folder itself, with drafts, and with what a
# restore has ready. All below `redis` is the private Redis's.
_OURS: Final = ("sidestream", "secret_key", "redis", "restoring", "up.")
# What a file system puts into its own root, which is a usual place for state in a container.
_NOBODYS: Final = ("lost+found",)
_OTHERS: Final = 0o077


def keep_to_owner(folder: Path) -> bool:
    """
    Let no other user read what is, or will be, in the folder; tell whether one could until now.

    From here on this process and all that it starts make files for their owner only. What earlier versions left
    readable is mended where it belongs to us; the folder itself only if nothing but our state is in it, since it
    may be somebody's home.
    """
    os.umask(_OTHERS)
    # Nothing of ours is there yet, or it is another user's: whoever wants to write there tells it.
    with suppress(OSError):
        return sum(_mend(path) for path in _state_in(folder)) > 0
    return False


def _state_in(folder: Path) -> Iterator[Path]:
    entries = list(folder.iterdir())
    ours = [entry for entry in entries if entry.name.removeprefix(".").startswith(_OURS)]
    if len(ours) == len([entry for entry in entries if entry.name not in _NOBODYS]):
        yield folder.resolve()
    for entry in ours:
        yield entry
        if not entry.is_symlink():
            yield from entry.rglob("*")


def _mend(path: Path) -> bool:
    """Take the rights of others from a file or folder; tell whether there were any."""
    with suppress(OSError):
        found = path.lstat()
        # A sticky folder is there for everybody, like /tmp; its links, sockets and devices are none of our making.
        plain = stat.S_ISREG(found.st_mode) or (stat.S_ISDIR(found.st_mode) and not found.st_mode & stat.S_ISVTX)
        if plain and found.st_uid == os.getuid() and found.st_mode & _OTHERS:
            path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
            return True
    return False
