"""`manage.py up`: everything that Sidestream needs, started and stopped together."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from chatapp.schema import sqlite_file
from chatapp.up.refusal import UpError
from chatapp.up.stack import Wishes, run


class Command(BaseCommand):
    help = "Start Redis, the local model, a worker and the web server as far as the settings do not name others."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
        parser.add_argument(
            "--port", type=int, default=8000, help="port to listen on; 0 takes a free one (default: %(default)s)"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            # A log line may hold any character, and the terminal may know only a few.
            sys.stdout.reconfigure(errors="replace")
        try:
            run(_wishes(options["host"], options["port"]), os.environ, sys.stdout)
        except UpError as exc:
            sys.stderr.write(f"{exc}\n")
            raise SystemExit(exc.exit_code) from exc
        except KeyboardInterrupt as exc:
            # Ctrl-C while the ground was still being checked: nothing was started.
            raise SystemExit(130) from exc


def _wishes(host: str, port: int) -> Wishes:
    name = settings.ALLOWED_HOSTS[0].lstrip(".") if settings.ALLOWED_HOSTS else host
    return Wishes(
        root=settings.BASE_DIR,
        var=settings.VAR,
        models=settings.MODELS_FILE,
        database=sqlite_file(),
        host=host,
        port=port,
        web_name="127.0.0.1" if name == "*" else name,
        streams=settings.WORKER_STREAMS,
        drain_s=settings.DRAIN_GRACE_S,
    )
