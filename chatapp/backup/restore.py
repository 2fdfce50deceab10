"""Restore a backup."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chatapp.backup import database
from chatapp.backup.archive import Backup, opened
from chatapp.backup.manifest import DATABASE, BackupError, Manifest, Unfinished
from chatapp.backup.place import Place
from chatapp.backup.progress import Progress
from chatapp.backup.switch import JOURNAL, Move, switch
from chatapp.disk import aside_of

_BY = "-by-restore"
# What SQLite keeps beside a database belongs to it: beside another it would be read as a part of that one.
_COMPANIONS = ("-wal", "-shm", "-journal")


def restore(place: Place, file: Path, say: Callable[[str], object]) -> tuple[Manifest, list[Path]]:
    """
    Put a backup's state in the place of the present one, which is set aside. The folder's lock must be held.

    All is read and proven before anything of the present state is touched. Gives also what was set aside.

    Raises:
        BackupError: nothing was changed.
    """
    ready: list[Ready] = []
    try:
        with opened(file) as backup:
            _check_room(place, backup.manifest)
            _unpack(place, backup, ready, say)
        new = next(one.file for one in ready if one.name == DATABASE)
        database.check(new)
        database.check_schema(new, backup.manifest.migrations)
        database.let_go(place.database)
        return backup.manifest, _put_in_place(place, ready)
    except OSError as exc:
        # A write that fails, as on a full disk, names no file.
        where = exc.filename or place.database.parent
        raise BackupError(f"It cannot be restored: {where}: {(exc.strerror or str(exc)).lower()}.") from exc
    finally:
        if not (place.folder / JOURNAL).exists():  # Else they are what the next start puts in their places.
            for one in ready:
                one.file.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Ready:
    """A member that lies unpacked beside its place."""

    name: str
    place: Path
    file: Path


def _check_room(place: Place, manifest: Manifest) -> None:
    free = shutil.disk_usage(place.database.parent).free
    if manifest.size > free:
        raise BackupError(
            f"It needs {_megabytes(manifest.size)} beside {place.database}, and {_megabytes(free)} are free."
        )


def _unpack(place: Place, backup: Backup, ready: list[Ready], say: Callable[[str], object]) -> None:
    tell = Progress(say, "unpacking", backup.manifest.size)
    for member in backup.manifest.members:
        target = place.of(member.name)
        if target is None:
            say(f"{member.name} is left out: the settings name another one, outside the state's folder")
            continue
        one = Ready(member.name, target, target.with_name(f".{target.name}.restoring"))
        ready.append(one)
        backup.extract(member, one.file, tell)


def _put_in_place(place: Place, ready: list[Ready]) -> list[Path]:
    """Do it, and give what was set aside."""
    moves = _moves(place, ready)
    asides = [Path(move.aside) for move in moves if os.path.lexists(move.place)]
    try:
        switch(place.folder, moves)
    except OSError as exc:
        if not (place.folder / JOURNAL).exists():
            raise
        raise Unfinished(
            f"{exc.filename}: {(exc.strerror or str(exc)).lower()}. All is verified and lies ready: mend that, and "
            "the next start finishes it."
        ) from exc
    return asides


def _moves(place: Place, ready: list[Ready]) -> list[Move]:
    moves = []
    for one in ready:
        aside = aside_of(one.place, _BY)
        moves.append(Move(str(one.place), str(aside), str(one.file)))
        if one.name == DATABASE:
            moves += [Move(f"{one.place}{end}", f"{aside}{end}") for end in _COMPANIONS]
    # Redis's files tell of answers that were under way in the state that goes.
    redis = place.folder / "redis"
    return [*moves, Move(str(redis), str(aside_of(redis, _BY)))]


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
