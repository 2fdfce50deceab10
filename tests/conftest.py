"""Fixtures that every suite may use: one private Redis a session."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from hypothesis import settings

# Who starts the suite in the background, or under nohup, has these ignored in all that it starts, and `up` would
# take that for its operator's wish. A handler that does nothing is no wish: started programs have the default.
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)

# A newcomer's first run must say what everyone's says: examples are derived from the test, not from chance. New ones
# are looked for by `pytest --hypothesis-profile deep`, which hypothesis's own plugin loads after this file.
settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.register_profile("deep", max_examples=20_000, deadline=None, print_blob=True)
settings.load_profile("repeatable")

# No test asks providers or this machine's ports for models, whatever keys the environment holds.
os.environ["SIDESTREAM_DISCOVER"] = "0"


def _redis_server() -> str | None:
    return shutil.which("redis-server") or shutil.which("valkey-server")


def _ping_until_ready(client: redis.Redis, process: subprocess.Popen[bytes]) -> None:
    """Connecting is retried by the kernel's listen queue only once the socket exists; until then look again."""
    for _ in range(500):
        if process.poll() is not None:
            pytest.fail("the private Redis ended while it was starting")
        try:
            client.ping()
        except redis.ConnectionError:
            # Waits for the process, which is the state of interest, not for the clock.
            try:
                process.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
        else:
            return
    pytest.fail("the private Redis did not answer within 10 s")


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """Give the address of a Redis of this session's own, on a Unix socket: `unix://<path>`."""
    server = _redis_server()
    if server is None:
        pytest.skip("needs redis-server or valkey-server on the PATH")
    # The folder stands directly in the temporary folder, because a socket's path may have 107 bytes only.
    folder = Path(tempfile.mkdtemp(prefix="sidestream-redis-"))
    socket = folder / "redis.sock"
    options = ["--port", "0", "--unixsocket", str(socket), "--dir", str(folder), "--save", "", "--appendonly", "no"]
    process = subprocess.Popen([server, *options], stdout=subprocess.DEVNULL)
    client = redis.Redis(unix_socket_path=str(socket))
    try:
        _ping_until_ready(client, process)
        yield f"unix://{socket}"
    finally:
        client.close()
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def empty_redis(redis_url: str) -> str:
    """Give the session's Redis, emptied."""
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    return redis_url
