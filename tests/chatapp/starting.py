"""A real `manage.py up` for tests: started, watched, and ended for certain."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What would point `up` at services of the person who runs the tests.
_FOREIGN = ("REDIS_URL", "DATABASE_URL", "MODELS_FILE", "NO_COLOR")
WAIT_S = 60


def environment(var: Path, **more: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("SIDESTREAM_") and name not in _FOREIGN
    }
    return {**kept, "SIDESTREAM_VAR": str(var), **more}


class Up:
    """
    A `manage.py up` under way, and what it has written so far.

    `wrapper` is a command that starts it; `root` is the checkout; `user` the number of who runs it.
    """

    def __init__(
        self,
        env: dict[str, str],
        *arguments: str,
        wrapper: tuple[str, ...] = (),
        root: Path = ROOT,
        python: str = sys.executable,
        user: int | None = None,
    ) -> None:
        self._process = subprocess.Popen(
            [*wrapper, python, "manage.py", "up", "--port", "0", *arguments],
            cwd=root, env=env, user=user, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            # The first Ctrl-C of a terminal goes to a group; this one stands for the whole terminal.
            start_new_session=True,
        )  # fmt: skip
        self.pid = self._process.pid
        self.text = ""
        self._more = threading.Condition()
        self._over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait until the output matches."""
        with self._more:
            self._more.wait_for(lambda: re.search(pattern, self.text, re.MULTILINE) or self._over, WAIT_S)
        found = re.search(pattern, self.text, re.MULTILINE)
        assert found, f"expected {pattern!r} in:\n{self.text}"
        return found

    def is_ready(self) -> str:
        """Wait until it says so, and give its address."""
        return self.wait_for(r"^Sidestream is ready at (\S+)$")[1]

    def process_of(self, service: str, which: str = "after") -> int:
        return int(self.wait_for(rf"\| {service} is ready {which}.*\(process (\d+)\)")[1])

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Ask it to end, and give its exit code once all that could write to its output has ended."""
        self._process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        code = self._process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        return code

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as output:
            for line in output:
                with self._more:
                    self.text += line
                    self._more.notify_all()
        with self._more:
            self._over = True
            self._more.notify_all()


@contextmanager
def running(env: dict[str, str], *arguments: str, wrapper: tuple[str, ...] = (), root: Path = ROOT) -> Iterator[Up]:
    up = Up(env, *arguments, wrapper=wrapper, root=root)
    try:
        yield up
    finally:
        if up.stop() < 0:
            pytest.fail(f"`up` was killed:\n{up.text}")


def processes_on(var: Path) -> list[str]:
    """Give the command lines of the processes that were started for the folder."""
    wanted = f"SIDESTREAM_VAR={var}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # It ended while it was looked at, or is someone else's.
    return found


def traces_on(var: Path) -> list[str]:
    """Give what should not be there once all is over: processes, sockets, locks."""
    litter = [path.name for path in var.rglob("*") if path.is_socket() or path.suffix in (".pid", ".lock")]
    return processes_on(var) + litter
