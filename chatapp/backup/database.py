"""A copy of a SQLite database as it was at one moment, and whether a copy is fit to be restored."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from chatapp.backup.manifest import BackupError
from chatapp.backup.progress import Progress
from chatapp.schema import Unreadable, applied_in, unknown

_PAGES = 4096  # copied at a time
_PAGE_BYTES = 4096
_WAIT_S = 20.0


def copy(database: Path, file: Path, tell: Progress) -> None:
    """
    Copy a database that others write to into a new file; what was committed before is in it, what comes later is not.

    One read transaction holds the moment, so that no write makes SQLite begin anew, and nobody who writes waits.
    The cost is linear in the database's size.

    Raises:
        BackupError: it cannot be read, or is damaged.
    """
    try:
        with closing(_open(database, "rw")) as source, closing(sqlite3.connect(file)) as target:
            target.execute("PRAGMA synchronous = OFF")  # It is read back and written again before anybody relies on it.
            source.execute("BEGIN")
            source.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
            source.backup(target, pages=_PAGES, progress=lambda _, left, total: tell.reach(total - left))
        check(file)
    except sqlite3.Error as exc:
        raise BackupError(f"The database {database} cannot be copied: {exc}.") from exc


def pages(database: Path) -> int:
    """Give about how many steps `copy` tells of its progress."""
    return database.stat().st_size // _PAGE_BYTES


def check(file: Path) -> None:
    """
    Prove that a database nobody writes to is whole.

    Raises:
        BackupError: it is damaged, or no database.
    """
    try:
        with closing(_open(file, "immutable")) as database:
            (finding,) = database.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as exc:
        finding = str(exc)
    if finding != "ok":
        raise BackupError(f"The database is damaged: {finding}.")


def check_schema(file: Path, told: tuple[str, ...]) -> None:
    """
    Prove that this version can go on with a database: by what it says, and by what its manifest told.

    Raises:
        BackupError: a newer version has written it, or it is not one of Sidestream's.
    """
    try:
        applied = applied_in(file)
    except Unreadable as exc:
        raise BackupError(f"The database is damaged: {exc}.") from exc
    if newer := sorted({*unknown(applied), *unknown(_pairs(told))}):
        raise BackupError(
            f"A newer Sidestream has made it: this one does not know {', '.join(newer)}. Restore it with that one."
        )
    if ("chatapp", "0001_initial") not in applied:
        raise BackupError("Its database is not one of Sidestream's.")
    with closing(_open(file, "immutable")) as database:
        # Sidestream has none of these, and they would run with its rights.
        if database.execute("SELECT 1 FROM sqlite_master WHERE type IN ('trigger', 'view')").fetchone():
            raise BackupError("Its database is not one of Sidestream's: there are triggers or views in it.")


def let_go(database: Path) -> None:
    """
    See that no process has the database open, and put what its log still holds into the file.

    Raises:
        BackupError: somebody uses it.
    """
    if not database.exists():
        return
    try:
        with closing(_open(database, "rw", wait_s=0)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.OperationalError as exc:
        if getattr(exc, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise BackupError(f"A process uses {database}. Stop what was started by hand, then try again.") from exc
    except sqlite3.DatabaseError:
        return  # It is damaged, which may be why it is to be replaced. It is set aside as it is.


def _open(file: Path, mode: str, wait_s: float = _WAIT_S) -> sqlite3.Connection:
    query = "immutable=1" if mode == "immutable" else f"mode={mode}"
    return sqlite3.connect(f"{file.absolute().as_uri()}?{query}", uri=True, timeout=wait_s, isolation_level=None)


def _pairs(names: tuple[str, ...]) -> set[tuple[str, str]]:
    return {(app, name) for app, _, name in (one.partition(".") for one in names)}
