"""Servers that a test may kill."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import redis

from streaming.log.memory import MemoryLog
from tests.streaming.cases import case, log  # noqa: F401 - fixtures.
from tests.streaming.process import Clock, Process, serving


class KillableRedis:
    """A Redis of the test's own, with an append-only file, that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{folder}/r.sock"

    def start(self) -> None:
        binary = shutil.which("redis-server") or shutil.which("valkey-server") or pytest.skip("needs a redis-server")
        self._process = subprocess.Popen(
            [binary, "--port", "0", "--unixsocket", f"{self._folder}/r.sock", "--dir", str(self._folder),
             "--appendonly", "yes", "--appendfsync", "everysec", "--save", ""],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        client = redis.Redis(unix_socket_path=f"{self._folder}/r.sock")
        while True:
            with contextlib.suppress(redis.RedisError):
                if client.ping():
                    break
            time.sleep(0.01)
        client.close()

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait()


@pytest.fixture
def free_redis() -> Callable[[Path], contextlib.AbstractContextManager[KillableRedis]]:
    @contextlib.contextmanager
    def start(_: Path) -> Iterator[KillableRedis]:
        # A socket's path may have 107 bytes only, so it does not stand in pytest's long folders.
        with tempfile.TemporaryDirectory(prefix="sidestream-") as folder:
            server = KillableRedis(Path(folder))
            server.start()
            try:
                yield server
            finally:
                server.kill()

    return start


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def process(clock: Clock) -> AsyncIterator[Process]:
    made = Process(MemoryLog(clock), clock)
    async with serving(made):
        yield made
