"""How the log looks in Redis: its keys, and an entry's fields.

An entry is {"<number> <attempt> <kind>": payload, "s": "<seq>" or of a block view "<seq> <index>"}. What changes
from token to token is a number of its own, and the other name is that of most entries near it: a stream keeps
both in a few bytes. A block view that is not small is compressed: HTML is most of what a log keeps, and shrinks to
a half or less.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from streaming.lifecycle import TERMINAL
from streaming.log.ports import LEASE_MS, RETENTION_MS, Batch, Entry, Kind, Logged, Ref

Fields: TypeAlias = Sequence[bytes]

# One entry, renewed with every write to any log: what tails block on.
WAKE = "ss:wake"
NOTICE = f"0 0 {Kind.NOTICE.value}"
COMPRESSED_FROM = 256  # characters
_OPENED_JSON = b"{"
_UNKNOWN = (0, 0, 0, Kind.UNKNOWN)


def log_key(conversation: str) -> str:
    return f"ss:{{{conversation}}}:log"


def gone_key(conversation: str) -> str:
    """Name the mark of a conversation that was deleted."""
    return f"ss:{{{conversation}}}:gone"


def key(ref: Ref, part: str) -> str:
    return f"ss:{{{ref.conversation}}}:{ref.number}:{part}"


def keys_of(conversation: str, refs: Sequence[Ref]) -> list[str]:
    """Name the log, then for each generation its own keys."""
    return [log_key(conversation), *(own for ref in refs for own in append_keys(ref)[1:])]


@lru_cache(maxsize=4096)
def meta_key(ref: Ref) -> str:
    """Name the one key that append.lua is given of a generation: it names the others after it."""
    return key(ref, "meta")


def append_keys(ref: Ref) -> tuple[str, ...]:
    """Name all keys that an append may write: the log, then the generation's own."""
    return log_key(ref.conversation), *(key(ref, part) for part in ("meta", "text", "reasoning", "facts", "blocks"))


def conversation_of(name: bytes) -> str:
    """Give the conversation that a log's key names."""
    return name[name.index(b"{") + 1 : name.index(b"}")].decode()


def append_args(batches: Sequence[Batch]) -> list[str | bytes | int]:
    """Give the arguments of append.lua."""
    args: list[str | bytes | int] = [LEASE_MS, RETENTION_MS]
    for batch in batches:
        restore, terminal = int(batch.restore), int(batch.state in TERMINAL)
        count = len(batch.entries)
        args.append(f"{batch.attempt} {batch.last_seq} {batch.state.value} {restore} {terminal} {count}")
        for entry in batch.entries:
            args += (f"{entry.number} {entry.attempt} {entry.kind.value}", _place(entry), _payload(entry))
    return args


def _place(entry: Entry) -> str | int:
    return f"{entry.seq} {entry.index}" if entry.kind is Kind.BLOCK else entry.seq


def _payload(entry: Entry) -> str | bytes:
    if entry.kind is Kind.BLOCK and len(entry.payload) >= COMPRESSED_FROM:
        return zlib.compress(entry.payload.encode(), level=1)
    return entry.payload


def view_of(stored: bytes) -> str:
    """Give the JSON of a block view, compressed or not."""
    return (stored if stored.startswith(_OPENED_JSON) else zlib.decompress(stored)).decode()


def logged_of(row_id: bytes, fields: Fields) -> Logged:
    """Read one entry as XREAD and XRANGE give it. One that an unknown version wrote is of an unknown kind."""
    try:
        return Logged(row_id.decode(), _entry_of(fields))
    except (ValueError, zlib.error):
        return Logged(row_id.decode(), Entry(*_UNKNOWN, ""))


def _entry_of(fields: Fields) -> Entry:
    name, payload, _, place = fields
    number, attempt, kind = _read_name(name)
    if kind is Kind.BLOCK:
        seq, index = place.split(b" ")
        return Entry(number, attempt, int(seq), kind, view_of(payload), int(index))
    return Entry(number, attempt, int(place), kind, payload.decode())


@lru_cache(maxsize=4096)
def _read_name(name: bytes) -> tuple[int, int, Kind]:
    number, attempt, kind = name.decode().split(" ")
    return int(number), int(attempt), Kind(kind)
