"""What a backup says of itself. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from chatapp.unseen import visible

FORMAT = 1
NAME = "manifest.json"
# It lists each migration once; this is room for some ten thousand.
MAX_BYTES = 1024 * 1024
DATABASE, SECRET_KEY, MODELS = "sidestream.sqlite3", "secret_key", "models.toml"
_NAMES = (DATABASE, SECRET_KEY, MODELS)
_MOST_SHOWN = 200
_SHA256 = re.compile(r"[0-9a-f]{64}")


class BackupError(Exception):
    """A backup or a restore cannot be done; the text is for the person who asked for it."""


class Unfinished(BackupError):
    """A restore is decided, and the next start finishes it."""


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    size: int  # in bytes, as restored
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    version: str  # of Sidestream
    created: str  # ISO 8601, UTC
    migrations: tuple[str, ...]  # "application.name"
    members: tuple[Member, ...]

    @property
    def size(self) -> int:
        return sum(member.size for member in self.members)

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1)


def parse(text: bytes) -> Manifest:
    """
    Read a manifest that anybody may have written.

    Raises:
        BackupError: it is none, or of a format that this version does not know.
    """
    try:
        told = json.loads(text)
        number = int(told["format"])
    except (ValueError, TypeError, LookupError, RecursionError) as exc:
        raise BackupError("It is no backup of Sidestream: its manifest cannot be read.") from exc
    if number != FORMAT:
        raise BackupError(
            f"It is a backup of format {number}, and this version reads format {FORMAT}. "
            "Restore it with the version that made it, or a newer one."
        )
    try:
        members = tuple(_member(one) for one in told["members"])
        migrations = tuple(map(_shown, told["migrations"]))
        manifest = Manifest(_shown(told["version"]), _shown(told["created"]), migrations, members)
    except (ValueError, TypeError, LookupError) as exc:
        raise BackupError(f"It is damaged: its manifest makes no sense ({exc}).") from exc
    names = [member.name for member in members]
    if len(set(names)) < len(names) or DATABASE not in names:
        raise BackupError("It is damaged: its manifest names no database, or a member twice.")
    return manifest


def _shown(told: object) -> str:
    """Make a text that stands in one line of a terminal and commands nothing there."""
    return visible(str(told)[:_MOST_SHOWN])


def _member(told: Mapping[str, Any]) -> Member:
    name, size, digest = told["name"], told["size"], told["sha256"]
    # No path is ever taken from a backup: these names stand for places that the settings know.
    if name not in _NAMES:
        raise ValueError(f"a member named {name!r:.80}")
    if type(size) is not int or size < 0:
        raise ValueError(f"a size of {size!r:.80}")
    if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        raise ValueError(f"a digest of {digest!r:.80}")
    return Member(name, size, digest)
