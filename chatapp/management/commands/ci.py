"""`manage.py ci`: everything that must hold before a change lands, as named and timed steps."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

_PYTHON = sys.executable
# pytest comes last, so that its counts are the last line.
STEPS: dict[str, list[str]] = {
    "lint": [_PYTHON, "-m", "ruff", "check", "."],
    "format": [_PYTHON, "-m", "ruff", "format", "--check", "."],
    "types": [_PYTHON, "-m", "mypy"],
    "imports": [str(Path(_PYTHON).with_name("lint-imports"))],
    "django": [_PYTHON, "manage.py", "check", "--fail-level", "WARNING"],
    "migrations": [_PYTHON, "manage.py", "makemigrations", "--check", "--dry-run"],
    "browser": [_PYTHON, "-m", "e2e.browser"],
    # Half of the suite waits for other processes, so two workers on two cores take little more than half the time. A
    # file's tests stay together, since they share what they have started.
    "tests": [_PYTHON, "-m", "pytest", "-n", "auto", "--maxprocesses", "4", "--dist", "loadfile"],
}


class Command(BaseCommand):
    help = "Run all checks and tests, or only the steps that are named."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("steps", nargs="*", metavar="step", help=f"any of: {', '.join(STEPS)}")

    def handle(self, *_args: Any, **options: Any) -> None:
        unknown = set(options["steps"]) - STEPS.keys()
        if unknown:
            sys.stderr.write(f"No such step: {', '.join(sorted(unknown))}. There are: {', '.join(STEPS)}.\n")
            raise SystemExit(2)
        failed = [name for name in STEPS if name in (options["steps"] or STEPS) and not self._passes(name)]
        raise SystemExit(bool(failed))

    def _passes(self, name: str) -> bool:
        """Run one step. A failure does not keep the others from running: one run shows all that is wrong."""
        self._say(f"{name}: {' '.join(STEPS[name][1:]) or STEPS[name][0]}")
        began = time.monotonic()
        passed = subprocess.run(STEPS[name], cwd=settings.BASE_DIR, check=False).returncode == 0  # noqa: S603
        if name != "tests":
            self._say(f"{name}: {'passed' if passed else 'FAILED'} in {time.monotonic() - began:.1f} s")
        return passed

    def _say(self, text: str) -> None:
        self.stdout.write(f"== {text}")
        # The step writes to the same place by itself.
        self.stdout.flush()
