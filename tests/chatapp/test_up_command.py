"""The real `manage.py up`, with the real processes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chatapp.starting import ROOT, WAIT_S, Up, environment, processes_on, running, traces_on

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc to see which processes are left")


@pytest.fixture(scope="module")
def var(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("var")


@pytest.fixture(scope="module")
def up(var: Path) -> Iterator[Up]:
    """Everything, the model included, on a folder that is empty at first."""
    with running(environment(var)) as up:
        up.wait_for("^Sidestream is ready at ")
        yield up


@pytest.fixture
def without_model(tmp_path: Path) -> dict[str, str]:
    """Start faster: the model is said to be elsewhere."""
    return environment(tmp_path / "var", SIDESTREAM_LLAMACPP_URL="http://127.0.0.1:9")


def refusal(env: dict[str, str], *arguments: str, python: tuple[str, ...] = (sys.executable,)) -> str:
    """Run it, see that it refuses with exit code 2, and give the sentence."""
    command = [*python, "manage.py", "up", *arguments]
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    return ended.stderr


def test_one_line_tells_the_address(up: Up) -> None:
    assert re.findall("^Sidestream.*$", up.text, re.MULTILINE) == [
        up.wait_for(r"^Sidestream is ready at http://127\.0\.0\.1:\d+$")[0]
    ]


def test_the_page_is_there_when_the_line_is(up: Up) -> None:
    address = up.wait_for(r"^Sidestream is ready at (\S+)$")[1]
    with urllib.request.urlopen(f"{address}/healthz", timeout=10) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("service", ["redis", "model", "worker", "web"])
def test_what_is_killed_comes_back(up: Up, service: str) -> None:
    first = up.process_of(service)
    os.kill(first, signal.SIGKILL)
    up.wait_for(rf"{service} was killed by SIGKILL; starting it again")
    assert up.process_of(service, "again") != first


def test_a_second_up_on_the_same_folder_is_refused(up: Up, var: Path) -> None:
    assert f"already runs on {var} (process {up.pid})" in refusal(environment(var))


def test_the_state_is_for_its_owner_only(up: Up, var: Path) -> None:
    loose = [
        path.name
        for path in var.rglob("*")
        if path.is_socket() or path.name == "secret_key"
        if path.stat().st_mode & 0o077
    ]
    assert loose == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_can_be_stopped_before_it_is_ready(without_model: dict[str, str], number: signal.Signals) -> None:
    with running(without_model) as up:
        up.wait_for(r"^up +\| redis is ready")
        assert up.stop(number) == 0
    assert "Sidestream is ready" not in up.text
    assert traces_on(Path(without_model["SIDESTREAM_VAR"])) == []


def test_nothing_is_left_when_it_is_killed(without_model: dict[str, str]) -> None:
    up = Up(without_model)
    up.wait_for("^Sidestream is ready at ")
    up.stop(signal.SIGKILL)
    give_up_at = time.monotonic() + 10
    while (left := processes_on(Path(without_model["SIDESTREAM_VAR"]))) and time.monotonic() < give_up_at:
        time.sleep(0.02)  # The system kills them one after the other.
    assert left == []


def test_nothing_is_left_when_it_is_told_to_stop(up: Up, var: Path) -> None:
    assert up.stop() == 0
    assert traces_on(var) == []


def test_a_taken_port_is_told_with_another_that_is_free(without_model: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        sentence = refusal(without_model, "--port", str(port))
    assert re.fullmatch(
        rf"Port {port} is already taken on 127\.0\.0\.1\. Choose another one: python manage\.py up --port \d+\n",
        sentence,
    )


def test_a_folder_that_cannot_be_written_is_told_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "Set SIDESTREAM_VAR to a folder that it may write to" in refusal(environment(tmp_path / "file" / "var"))


def test_a_redis_that_does_not_answer_is_told_without_its_password(without_model: dict[str, str]) -> None:
    url = "redis://:s3cret@127.0.0.1:9/0"
    assert refusal({**without_model, "REDIS_URL": url}, "--port", "0") == (
        "REDIS_URL names 127.0.0.1:9, but no Redis answers there.\n"
    )


def test_nonsense_in_a_variable_is_told_by_name(without_model: dict[str, str]) -> None:
    sentence = refusal({**without_model, "SIDESTREAM_DEBUG": "maybe"})
    assert sentence == "SIDESTREAM_DEBUG must be true or false, not 'maybe'.\n"


def test_missing_requirements_are_told_with_the_line_that_installs_them(without_model: dict[str, str]) -> None:
    # -S leaves out the folder that packages are installed in.
    sentence = refusal(without_model, python=(sys.executable, "-S"))
    assert "The package django is not installed" in sentence
    assert ".venv/bin/pip install --no-deps -r requirements.txt" in sentence


def test_a_python_that_is_too_old_is_told(without_model: dict[str, str]) -> None:
    program = "import manage; manage.main(needed=(99, 1))"
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=without_model, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr.startswith("Sidestream needs Python 99.1 or newer, and ")) == (2, True)
