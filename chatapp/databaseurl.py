"""Django's settings of a database: of a SQLite file by its path, or of what DATABASE_URL says."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Final

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

_SQLITE: Final = "django.db.backends.sqlite3"
_SHARED: Final = {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}


def of_file(path: Path) -> dict[str, Any]:
    """Use the SQLite file at `path`, which never becomes part of a URL: any name of a folder is as good as another."""
    return {
        **_SHARED,
        "ENGINE": _SQLITE,
        "NAME": str(path),
        # A transaction that reads first and writes later fails at once when another has written in
        # between, whatever the timeout. IMMEDIATE takes the write lock at its start and waits for it.
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL;",
        },
        # A file, since an in-memory database cannot be shared between threads without false locks.
        "TEST": {"NAME": str(Path(tempfile.gettempdir()) / f"sidestream-test-{os.getpid()}.sqlite3")},
    }


def of_url(name: str, url: str, base: Path) -> dict[str, Any]:
    """
    Read the variable `name`; a relative SQLite path is below `base`.

    Raises:
        ImproperlyConfigured: it is no address of a database. The message never shows it: it may hold a password.
    """
    if "#" in url:
        raise ImproperlyConfigured(f"{name} holds a #, which begins nothing in a database's address: write it as %23.")
    try:
        config: dict[str, Any] = dict(dj_database_url.parse(url))
    except ValueError as exc:
        raise ImproperlyConfigured(
            f"{name} is no address of a database, such as postgres://user:password@host/name or "
            "sqlite:////folder/file; characters with a meaning of their own are written with % and two digits."
        ) from exc
    return of_file(_sqlite_file(name, url, base / config["NAME"])) if config["ENGINE"] == _SQLITE else config | _SHARED


def _sqlite_file(name: str, url: str, path: Path) -> Path:
    if not url.startswith(("sqlite:///", "sqlite://:memory:")):
        raise ImproperlyConfigured(
            f"{name} needs three slashes before a relative path, and four before an absolute one."
        )
    if path.name == ":memory:":
        raise ImproperlyConfigured(f"{name} names a database in memory, which several processes cannot share.")
    if "?" in url:
        raise ImproperlyConfigured(
            f"{name} holds a ?: SQLite takes no options here, and in a path it is written as %3F."
        )
    return path
