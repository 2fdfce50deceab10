"""
Old state out, new state in, as one step: whoever is killed in the middle has the one or the other.

What is new lies ready beside its place. Then a journal is written, in one rename: from there on the new state is
in force, and whoever starts next finishes the moves that are left, before reading anything.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from chatapp.disk import sync

JOURNAL = "restoring.json"


@dataclass(frozen=True, slots=True)
class Move:
    """What lies at `place` goes to `aside`, and what lies at `ready`, if that is named, takes its place."""

    place: str
    aside: str
    ready: str = ""


def switch(folder: Path, moves: Sequence[Move]) -> None:
    """Carry out all moves or, if that fails before the journal is there, none."""
    draft = folder / f".{JOURNAL}"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump([astuple(move) for move in moves], file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / JOURNAL)
    sync(folder)
    finish(folder)


def finish(folder: Path) -> None:
    """Carry out the moves that a process which was killed left; for whoever starts, before anything is read."""
    journal = folder / JOURNAL
    try:
        file = journal.open("r+", encoding="utf-8")
    except FileNotFoundError:
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not journal.exists():
            return  # Another one finished them meanwhile.
        moves = [Move(*fields) for fields in json.load(file)]
        for move in moves:
            _carry_out(move)
        for parent in {Path(move.place).parent for move in moves}:
            sync(parent)
        journal.unlink()
        sync(folder)


def _carry_out(move: Move) -> None:
    """Do what is left of a move. It may have been done, or half of it."""
    if move.ready and not os.path.lexists(move.ready):
        return
    if os.path.lexists(move.place) and not os.path.lexists(move.aside):
        Path(move.place).rename(move.aside)
    if move.ready:
        Path(move.ready).replace(move.place)
