"""A SQLite database that another version of Sidestream may have written: does this one know its schema?"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

from django.apps import apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader

Migration: TypeAlias = tuple[str, str]  # application, name


class Unreadable(Exception):
    """The file is no database, or a damaged one; the text is SQLite's reason."""


def applied_in(database: Path) -> set[Migration]:
    """
    Read which migrations a database has; none if there is no such file. Nothing is written, not even a WAL's end.

    Raises:
        Unreadable
    """
    if not database.exists():
        return set()
    # Where no writer left a log to be read too, even the empty files that a reader makes can be done without.
    mode = "mode=ro" if database.with_name(f"{database.name}-wal").exists() else "immutable=1"
    try:
        # as_uri quotes what would be understood as a part of the address: "#", "?", "%".
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?{mode}", uri=True)) as reading:
            if not reading.execute("SELECT 1 FROM sqlite_master WHERE name = 'django_migrations'").fetchone():
                return set()
            return set(reading.execute("SELECT app, name FROM django_migrations"))
    except sqlite3.Error as exc:
        raise Unreadable(str(exc)) from exc


def sqlite_file() -> Path | None:
    """Give the file of the database that the settings name; None if it is a server."""
    return Path(connection.settings_dict["NAME"]) if connection.vendor == "sqlite" else None


def unknown(applied: Iterable[Migration]) -> list[str]:
    """Give those that this version does not have, of the applications that it has."""
    here = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    known = {*here, *(old for migration in here.values() for old in migration.replaces)}
    ours = {config.label for config in apps.get_app_configs()}
    return sorted(f"{app}.{name}" for app, name in applied if app in ours and (app, name) not in known)
