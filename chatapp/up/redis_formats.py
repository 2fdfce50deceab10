"""Which server can read which of Redis's files, by what both say of themselves. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from math import inf
from typing import TypeAlias

Version: TypeAlias = tuple[int, ...]

# The first servers that keep the append-only file in parts. Older ones look for a single file only.
IN_PARTS_SINCE: Version = (7, 0)
# The newest RDB format that a server reads, from each version on. Valkey branched off at format 11 of Redis,
# and counts formats of its own since 9.0.
_REDIS_BY_REDIS: tuple[tuple[Version, float], ...] = (
    ((0,), 9),
    ((7, 0), 10),
    ((7, 2), 11),
    ((7, 4), 12),
    ((8, 2), inf),
)
_READS: dict[tuple[str, str], tuple[tuple[Version, float], ...]] = {
    # Infinite where nothing is known yet: such a server is let try, and is believed if it refuses.
    ("redis", "redis"): _REDIS_BY_REDIS,
    ("redis", "valkey"): (((0,), 0),),
    ("valkey", "redis"): (((0,), 11),),
    ("valkey", "valkey"): (((0,), 0), ((9, 0), 80), ((9, 2), inf)),
}


@dataclass(frozen=True, slots=True)
class Server:
    """A server that can be started; `kind` is redis or valkey."""

    binary: str
    kind: str
    version: Version

    def __str__(self) -> str:
        return named(self.kind, ".".join(map(str, self.version)))


class Layout(Enum):
    SINGLE = auto()  # one file, as up to Redis 6.2
    PARTS = auto()  # a folder with a manifest, since 7.0
    # One file that is newer than parts beside it. Whoever knows parts would read those, and miss what came later.
    SINGLE_AFTER_PARTS = auto()


@dataclass(frozen=True, slots=True)
class Format:
    """The RDB format that a file's first bytes name: whose it is, redis or valkey, and its number."""

    kind: str
    number: int


@dataclass(frozen=True, slots=True)
class Files:
    """
    What is known of the files that a server left.

    `format` is None where they hold commands only, which every server reads. `fault` completes "they were set
    aside because …" where no server could read them, or would start without them and say nothing.
    """

    layout: Layout
    writer: str = ""  # Such as "Redis 7.0.15"; empty if nobody knows.
    format: Format | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """The server to start; `fault` says why the files must be set aside before, and is empty if they can stay."""

    server: Server
    fault: str = ""


def named(kind: str, version: str) -> str:
    return f"{kind.capitalize()} {version}"


def choose(servers: Sequence[Server], files: Files | None) -> Choice:
    """Take the first server that reads the files. If none does, take the first of all, without the files."""
    if files is None:
        return Choice(servers[0])
    able = next((server for server in servers if reads(server, files)), None)
    if able is not None and not files.fault:
        return Choice(able)
    return Choice(servers[0], files.fault or f"{_listed(servers)} cannot read them")


def reads(server: Server, files: Files) -> bool:
    """Tell whether a server looks at these files first, and knows their format."""
    knows_parts = server.version >= IN_PARTS_SINCE
    if files.layout is not Layout.SINGLE and knows_parts is not (files.layout is Layout.PARTS):
        return False
    if files.format is None:
        return True
    newest = [number for since, number in _READS[server.kind, files.format.kind] if since <= server.version][-1]
    return files.format.number <= newest


def _listed(servers: Sequence[Server]) -> str:
    *others, last = dict.fromkeys(map(str, servers))
    return f"{', '.join(others)} and {last}" if others else last
