"""`manage.py backup FILE`: the lasting state in one file, while Sidestream runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatapp.backup.make import make
from chatapp.backup.manifest import BackupError
from chatapp.backup.place import place


class Command(BaseCommand):
    help = (
        "Write the state of one moment to one file: the database (SQLite), the secret key, and the models if "
        "their file lies in the state's folder. Sidestream may run meanwhile. The file holds secrets, so that it is "
        "for its owner only."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="where to write it; a name that ends with .zip suits it")
        parser.add_argument("--force", action="store_true", help="overwrite the file if it is there")

    def handle(self, *_args: Any, **options: Any) -> None:
        file = options["file"].expanduser().absolute()
        try:
            manifest = make(place(), file, self.stderr.write, overwrite=options["force"])
        except BackupError as exc:
            raise CommandError(str(exc)) from exc
        names = ", ".join(member.name for member in manifest.members)
        self.stdout.write(f"{file}: {names}, {file.stat().st_size / 1e6:,.1f} MB, as of {manifest.created}")
