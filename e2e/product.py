"""The whole product as an operator starts it, and the scripted model service that it talks to."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[1]
# What would point the product at services of the person who runs the tests.
_FOREIGN = ("REDIS_URL", "DATABASE_URL", "MODELS_FILE")
_PR_SET_PDEATHSIG = 1  # From linux/prctl.h.
_START_S = 90
_STOP_S = 30


class Program:
    """A process that writes to a log file."""

    def __init__(self, command: list[str], log: Path, env: dict[str, str] | None = None) -> None:
        self._log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                # Ctrl-C in the terminal is for pytest, which stops this in its own order.
                start_new_session=True,
                preexec_fn=_end_with_us if sys.platform == "linux" else None,  # noqa: PLW1509  # It only tells the system.
            )  # fmt: skip

    @property
    def said(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def wait_for(self, pattern: str) -> str:
        """Wait until its log matches, and give the pattern's group."""
        give_up_at = time.monotonic() + _START_S
        while time.monotonic() < give_up_at:
            ended = self.process.poll() is not None
            if found := re.search(pattern, self.said, re.MULTILINE):
                return found[1]
            if ended:
                break
            time.sleep(0.05)
        raise AssertionError(f"expected {pattern!r} in what {self.process.args!r} said:\n{self.said}")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


def _end_with_us() -> None:
    """Have the system stop this process when pytest is killed, so that nothing is left running."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@contextmanager
def running(command: list[str], log: Path, env: dict[str, str] | None = None) -> Iterator[Program]:
    program = Program(command, log, env)
    try:
        yield program
    finally:
        program.stop()


@dataclass(frozen=True, slots=True)
class Product:
    """A Sidestream that runs."""

    url: str
    scripted: str  # The scripted model service's address.
    program: Program

    def process_of(self, service: str) -> int:
        """Give the process id of one of its parts."""
        return int(self.program.wait_for(rf"\| {service} is ready after .*\(process (\d+)\)"))

    @contextmanager
    def frozen(self, service: str) -> Iterator[None]:
        """Stop a part of it as a debugger would, for the time of the block."""
        process = self.process_of(service)
        os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process, signal.SIGCONT)

    async def calls(self, prompt: str) -> list[dict[str, Any]]:
        """Give the scripted service's own account of the calls with this prompt."""
        async with httpx.AsyncClient() as client:
            stats = (await client.get(f"{self.scripted}/stats")).json()
        return [call for call in stats["calls"] if call["prompt"] == prompt]


@contextmanager
def scripted_service(folder: Path) -> Iterator[str]:
    """Play the scripts of `folder`/scripts; give the address."""
    command = [sys.executable, "-m", "streaming.upstream.scripted_server", "--scripts", str(folder / "scripts")]
    with running(command, folder / "scripted.log") as program:
        yield program.wait_for(r"^Scripted upstream is ready at (\S+)$")


@contextmanager
def product(folder: Path, scripted: str) -> Iterator[Product]:
    """Run `manage.py up` with its state in `folder`/var and the models of `folder`/models.toml."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SIDESTREAM_")}
    env = {name: value for name, value in kept.items() if name not in _FOREIGN} | {
        "SIDESTREAM_VAR": str(folder / "var"),
        "MODELS_FILE": str(folder / "models.toml"),
        "SIDESTREAM_DISCOVER": "0",
        # What still streams at the end was left there by a test that failed.
        "SIDESTREAM_DRAIN_GRACE_S": "1",
        # Tests ask faster than people.
        "SIDESTREAM_PROMPTS_PER_MINUTE": "0",
        "SIDESTREAM_CONVERSATIONS_PER_MINUTE": "0",
    }
    command = [sys.executable, "manage.py", "up", "--port", "0"]
    with running(command, folder / "up.log", env) as program:
        yield Product(program.wait_for(r"^Sidestream is ready at (\S+)$"), scripted, program)


def closed_port() -> int:
    """Give a port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port
