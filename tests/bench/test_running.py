"""A benchmark says what is missing, and waits only for what lives."""

from __future__ import annotations

import sys

import pytest

from tests.bench import run
from tests.bench.processes import free_port, running


def test_a_process_that_dies_is_not_waited_for() -> None:
    command = (sys.executable, "-c", "raise SystemExit('no such server')")
    with pytest.raises(SystemExit, match="no such server"), running(*command, ready=f"tcp://127.0.0.1:{free_port()}"):
        pytest.fail("it never answers")


def test_a_floor_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr("sys.argv", ["run", "--floor", "uvicorn"])
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(SystemExit):
        run.parse()
    assert "not installed: uvicorn" in capsys.readouterr().err
