"""`manage.py restore FILE`: the state of a backup in the place of the present one."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from redis.exceptions import RedisError

from chatapp import presence
from chatapp.backup.manifest import BackupError, Unfinished
from chatapp.backup.place import place
from chatapp.backup.restore import restore
from chatapp.up.grounds import make_folder, only_one
from chatapp.up.refusal import Refused


class Command(BaseCommand):
    help = (
        "Put the state of a backup in the place of the present one, which is set aside, not removed. Sidestream must "
        "not run. Everything is verified before anything is changed. Restore only what you made yourself."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="what `manage.py backup` wrote")

    def handle(self, *_args: Any, **options: Any) -> None:
        file = options["file"].expanduser().absolute()
        try:
            state = place()
            make_folder(state.folder)
            with only_one(state.folder):
                _check_workers()
                manifest, asides = restore(state, file, self.stderr.write)
        except Unfinished as exc:
            raise CommandError(f"{file} is restored by half. {exc}") from exc
        except BackupError as exc:
            raise CommandError(f"{file} is not restored, and nothing was changed. {exc}") from exc
        except Refused as exc:
            raise CommandError(str(exc)) from exc
        self.stdout.write(f"restored the state of {manifest.created}, as Sidestream {manifest.version} had it")
        for aside in asides:
            self.stdout.write(f"set aside: {aside}")
        if os.environ.get("REDIS_URL"):
            self.stdout.write(
                "Empty the Redis that REDIS_URL names before you start: it still tells of the state that was replaced."
            )


def _check_workers() -> None:
    """Processes that were started by hand hold no lock; their workers tell an external Redis that they live."""
    if not os.environ.get("REDIS_URL"):
        return
    try:
        alive = asyncio.run(_living())
    except (RedisError, OSError, TimeoutError):
        return
    if alive:
        raise BackupError("Workers run on the Redis that REDIS_URL names. Stop Sidestream first.")


async def _living() -> int:
    async with asyncio.timeout(presence.TIMEOUT_S), presence.connect(settings.REDIS_URL) as client:
        return await presence.living(client)
