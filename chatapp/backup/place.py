"""Where the state lies, by the settings in force."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from chatapp.backup.manifest import DATABASE, MODELS, SECRET_KEY, BackupError
from chatapp.schema import sqlite_file


@dataclass(frozen=True, slots=True)
class Place:
    root: Path  # of manage.py
    folder: Path  # of the state
    database: Path
    key: Path | None  # None if the operator keeps the key elsewhere.
    models: Path | None  # None if they are not in the state's folder.

    def of(self, member: str) -> Path | None:
        """Give the place of a backup's member; None if the settings name none."""
        return {DATABASE: self.database, SECRET_KEY: self.key, MODELS: self.models}[member]


def place() -> Place:
    """
    Raises:
        BackupError: the database is a server, which has better means of its own.
    """
    database = sqlite_file()
    if database is None:
        raise BackupError(
            "DATABASE_URL names a PostgreSQL: back it up with pg_dump and restore it with pg_restore, and keep the "
            f"secret key too ({settings.KEY_FILE or 'it is in SIDESTREAM_SECRET_KEY'})."
        )
    models = settings.MODELS_FILE if settings.MODELS_FILE.is_relative_to(settings.VAR) else None
    return Place(settings.BASE_DIR, settings.VAR, database, settings.KEY_FILE, models)
