"""What is known of one generation after the faults have stopped, by four witnesses who did not talk to each other."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx

from streaming.events import Event, event_from_dict
from streaming.frames import START_CURSOR
from streaming.lifecycle import State
from streaming.log.ports import Log, Logged, LogSnapshot, Ref
from streaming.snapshot import Snapshot
from tests.torture.page import Page, Seen
from tests.torture.person import Asked, Person, Stop
from tests.torture.scripts import ALL, Script

_END_OF_TIME = f"{10**14}-0"
_ALL_ENTRIES = 1_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """The generation in the database."""

    state: State
    attempt: int
    seq: int
    text: str
    text_length: int
    text_sha256: str
    reasoning: str
    error: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Archive:
    """Its events in the database; `lines` is what the digest is of."""

    events: tuple[Event, ...]
    lines: str
    count: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Call:
    """One call in the upstream's own account; times are of the machine's clocks, in ms."""

    outcome: str  # finished, aborted or open
    frames: int  # written, the head included
    opened_mono: float
    closed_mono: float | None
    closed_at: float | None


@dataclass(frozen=True, slots=True)
class Harm:
    """What the suite itself took away, so that the product cannot be blamed for its absence."""

    wiped: bool = False  # the generation's keys were deleted, or its log lost its tail, as by a power failure
    upstream_way: bool = False  # the way to the upstream was disturbed


@dataclass(frozen=True, slots=True)
class Evidence:
    asked: Asked
    row: Row
    archive: Archive | None
    entries: tuple[Logged, ...]  # the log's, in its order, views included
    logged: Snapshot | None  # what the log's snapshot script gives
    samples: tuple[LogSnapshot, ...] = ()  # the same, at moments in between
    calls: tuple[Call, ...] = ()
    seen: tuple[Seen, ...] = ()
    stops: tuple[Stop, ...] = ()
    harm: Harm = field(default_factory=Harm)

    @property
    def script(self) -> Script:
        return ALL[self.asked.model]


def rows_of(database: Path, gens: Sequence[str]) -> dict[str, Row]:
    """Read rows, past the ORM."""
    columns = "state, attempt, seq, text, text_length, text_sha256, reasoning, error"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=20)) as connection:
        found = {gen: _one(connection, f"SELECT {columns} FROM chatapp_generation WHERE id = ?", gen) for gen in gens}
    return {gen: _row(row) for gen, row in found.items() if row}


def archives_of(database: Path, gens: Sequence[str]) -> dict[str, Archive]:
    query = "SELECT body, count, sha256 FROM chatapp_eventarchive WHERE generation_id = ?"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=20)) as connection:
        found = {gen: _one(connection, query, gen) for gen in gens}
    return {gen: _archive(*row) for gen, row in found.items() if row}


async def calls_of(upstream_port: int) -> dict[tuple[str, str], list[Call]]:
    """Read the upstream's account, by prompt and the upstream's name of the model."""
    async with httpx.AsyncClient(verify=False) as client:
        stats = (await client.get(f"http://127.0.0.1:{upstream_port}/stats")).json()
    calls: dict[tuple[str, str], list[Call]] = {}
    for record in stats["calls"]:
        call = Call(*(record[name] for name in ("outcome", "frames", "opened_mono", "closed_mono", "closed_at")))
        calls.setdefault((record["prompt"], record["model"]), []).append(call)
    return calls


async def gather(
    log: Log, database: Path, upstream_port: int, people: Iterable[Person], pages: Mapping[str, Sequence[Page]],
    samples: Mapping[str, Sequence[LogSnapshot]], harmed: Mapping[str, Harm],
) -> list[Evidence]:  # fmt: skip
    """Ask all witnesses about every generation of these people; `pages` and `samples` are by conversation."""
    people = list(people)
    gens = [asked.gen for person in people for asked in person.asked]
    rows, archives = rows_of(database, gens), archives_of(database, gens)
    calls = await calls_of(upstream_port)
    found = []
    for person in people:
        conversation = person.conversation
        entries = await log.range(conversation, START_CURSOR, _END_OF_TIME, _ALL_ENTRIES)
        refs = [Ref(conversation, asked.number, asked.gen) for asked in person.asked]
        logged = (await log.snapshot(conversation, refs)).generations
        for asked in person.asked:
            script = ALL[asked.model]
            found.append(
                Evidence(
                    asked,
                    rows[asked.gen],
                    archives.get(asked.gen),
                    tuple(one for one in entries if one.entry.number == asked.number),
                    logged.get(asked.number),
                    tuple(one for one in samples.get(conversation, ()) if asked.number in one.generations),
                    tuple(calls.get((asked.prompt, f"{script.name}@{script.rate:g}"), ())),
                    tuple(filter(None, (page.seen(asked.gen) for page in pages.get(conversation, ())))),
                    tuple(stop for stop in person.stops if stop.gen == asked.gen),
                    harmed.get(asked.gen, Harm()),
                )
            )
    return found


def _row(columns: tuple[Any, ...]) -> Row:
    state, attempt, seq, text, length, sha256, reasoning, error = columns
    return Row(State(state), attempt, seq, text, length, sha256, reasoning, json.loads(error or "null"))


def _one(connection: sqlite3.Connection, query: str, gen: str) -> tuple[Any, ...] | None:
    row: tuple[Any, ...] | None = connection.execute(query, (UUID(gen).hex,)).fetchone()
    return row


def _archive(body: bytes, count: int, sha256: str) -> Archive:
    lines = zlib.decompress(body).decode()
    return Archive(tuple(event_from_dict(json.loads(line)) for line in lines.split("\n")), lines, count, sha256)
