"""Starts what is measured, and reads what the kernel knows of it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
# What stands in a process's command line, and what the process is.
KINDS = {
    "redis-server": "redis",
    "valkey-server": "redis",
    "daphne": "web",
    "uvicorn": "web",
    "celery": "worker",
    " up": "up",
}
CATALOGUE = """
[[models]]
id = "stub"
label = "Stub"
adapter = "openai_chat"
address = "http://127.0.0.1:{port}/v1"
model = "{model}"
limits = {{ answer_chars = 2000000 }}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(
    *command: str, ready: str = "", environ: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command, from when `ready`, a http:// or tcp:// address, answers. A command that ends before ends this."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **(environ or {})}, stdout=log, stderr=log)
        try:
            if ready:
                _wait(ready, process, log)
            yield process
        finally:
            process.terminate()
            process.wait(60)


def _wait(url: str, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    for _ in range(1200):
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError):
            _reach(url)
            return
        time.sleep(0.05)
    log.seek(0)
    sys.exit(f"{url} did not answer:\n{log.read().decode()[-4000:]}")


def _reach(url: str) -> None:
    """Get a http:// address, or only connect to a tcp:// one."""
    parts = urlsplit(url)
    if parts.scheme == "tcp":
        socket.create_connection((parts.hostname, parts.port), timeout=5).close()
    else:
        urllib.request.urlopen(url, timeout=5).close()


def family(pid: int) -> dict[int, str]:
    """Give a process and all below it, with the name of each by what it does."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            child, parent = int(entry.parent.name), int(entry.read_text().rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(child)
    found, todo = {}, [pid]
    while todo:
        one = todo.pop()
        found[one] = _name(one)
        todo += children.get(one, [])
    return found


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        for word, name in KINDS.items():
            if word in line:
                return name
    return "other"


def cpu_seconds(pids: Mapping[int, str]) -> dict[str, float]:
    spent: dict[str, float] = {}
    for pid, name in pids.items():
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            spent[name] = spent.get(name, 0.0) + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return spent


def resident_kb(pids: Mapping[int, str]) -> dict[str, int]:
    kept: dict[str, int] = {}
    for pid, name in pids.items():
        with contextlib.suppress(OSError):
            line = next(x for x in Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("VmRSS"))
            kept[name] = kept.get(name, 0) + int(line.split()[1])
    return kept


def catalogue(folder: Path, upstream_port: int, model: str) -> Path:
    path = folder / "models.toml"
    path.write_text(CATALOGUE.format(model=model, port=upstream_port))
    return path
