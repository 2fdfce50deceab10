"""The site's database, read past the ORM."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from streaming.events import event_from_dict
from streaming.lifecycle import State
from tests.torture.evidence import Archive, Row

_COLUMNS = "state, attempt, seq, text, text_length, text_sha256, reasoning, error, blocks, render_version"


def rows_of(database: Path, gens: Sequence[str]) -> dict[str, Row]:
    """Read rows, past the ORM."""
    return {gen: _row(*row) for gen, row in _found(database, gens, f"SELECT {_COLUMNS} FROM chatapp_generation", "id")}


def states_of(database: Path, gens: Sequence[str]) -> dict[str, State]:
    """Read rows' states only."""
    return {gen: State(row[0]) for gen, row in _found(database, gens, "SELECT state FROM chatapp_generation", "id")}


def archives_of(database: Path, gens: Sequence[str]) -> dict[str, Archive]:
    query = "SELECT body, count, sha256 FROM chatapp_eventarchive"
    return {gen: _archive(*row) for gen, row in _found(database, gens, query, "generation_id")}


def held_of(database: Path, conversation: str) -> tuple[int, dict[str, tuple[int, str]]]:
    """Give how many turns a conversation has in the database, and each generation's number and model."""
    key = (UUID(conversation).hex,)
    with _reading(database) as connection:
        turns = connection.execute("SELECT count(*) FROM chatapp_turn WHERE conversation_id = ?", key).fetchone()[0]
        query = "SELECT id, number, model FROM chatapp_generation WHERE conversation_id = ?"
        rows = connection.execute(query, key).fetchall()
    return turns, {str(UUID(gen)): (number, model) for gen, number, model in rows}


@contextmanager
def _reading(database: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=20)) as connection:
        yield connection


def _found(database: Path, gens: Sequence[str], query: str, key: str) -> list[tuple[str, tuple[Any, ...]]]:
    with _reading(database) as connection:
        rows = [(gen, connection.execute(f"{query} WHERE {key} = ?", (UUID(gen).hex,)).fetchone()) for gen in gens]
    return [(gen, row) for gen, row in rows if row]


def _row(
    state: str, attempt: int, seq: int, text: str, length: int, sha256: str, reasoning: str,
    error: str | None, blocks: str, render_version: int,
) -> Row:  # fmt: skip
    html = tuple(block["html"] for block in json.loads(blocks))
    failure = json.loads(error or "null")
    return Row(State(state), attempt, seq, text, length, sha256, reasoning, failure, html, render_version > 0)


def _archive(body: bytes, count: int, sha256: str) -> Archive:
    lines = zlib.decompress(body).decode()
    return Archive(tuple(event_from_dict(json.loads(line)) for line in lines.split("\n")), lines, count, sha256)
