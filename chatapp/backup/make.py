"""Make a backup."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from chatapp.backup import database
from chatapp.backup.archive import write
from chatapp.backup.manifest import DATABASE, MODELS, SECRET_KEY, BackupError, Manifest, Member
from chatapp.backup.place import Place
from chatapp.backup.progress import Progress
from chatapp.disk import sync
from chatapp.schema import applied_in


def make(place: Place, file: Path, say: Callable[[str], object], *, overwrite: bool) -> Manifest:
    """
    Write a backup of the state to `file`, which is whole or not there at all.

    Raises:
        BackupError
    """
    if not place.database.exists():
        raise BackupError(f"There is nothing to back up: no database is at {place.database}.")
    _check_target(file, overwrite)
    try:
        with _workshop(file) as workshop:
            manifest = _write(place, workshop, say)
            _check_target(file, overwrite)  # Another may have come meanwhile.
            (workshop / "backup").replace(file)
            sync(file.parent)
    except OSError as exc:
        raise BackupError(f"The backup cannot be written to {file}: {(exc.strerror or str(exc)).lower()}.") from exc
    return manifest


def _write(place: Place, workshop: Path, say: Callable[[str], object]) -> Manifest:
    copied = workshop / "database"
    database.copy(place.database, copied, Progress(say, "copying the database", database.pages(place.database)))
    parts = {DATABASE: copied}
    if place.key and place.key.exists():
        parts[SECRET_KEY] = place.key
    if place.models and place.models.exists():
        parts[MODELS] = place.models
    tell = Progress(say, "packing", sum(part.stat().st_size for part in parts.values()))
    finished: list[Manifest] = []

    def made(members: tuple[Member, ...]) -> Manifest:
        finished.append(_manifest(place, copied, members))
        return finished[0]

    write(workshop / "backup", parts, made, tell)
    return finished[0]


def _manifest(place: Place, copied: Path, members: tuple[Member, ...]) -> Manifest:
    project = tomllib.loads((place.root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    created = datetime.now(UTC).isoformat(timespec="seconds")
    migrations = tuple(sorted(f"{app}.{name}" for app, name in applied_in(copied)))
    return Manifest(project["version"], created, migrations, members)


def _check_target(file: Path, overwrite: bool) -> None:
    if file.is_dir():
        raise BackupError(f"{file} is a folder. Name a file in it.")
    if not file.parent.is_dir():
        raise BackupError(f"There is no folder {file.parent}.")
    if os.path.lexists(file) and not overwrite:
        raise BackupError(f"{file} is there already. Choose another name, or overwrite it with --force.")


@contextmanager
def _workshop(file: Path) -> Iterator[Path]:
    """Give a folder of the owner's beside `file`; what earlier ones left that were killed is removed."""
    prefix = f".{file.name}.part-"
    for left in file.parent.glob(f"{prefix}*"):
        with _held(left) as is_free:
            if is_free:
                shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=file.parent))
    try:
        with _held(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _held(folder: Path) -> Iterator[bool]:
    """Hold a folder's lock, which ends with the process; False if another has it, or it is not ours."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)
