"""`manage.py up` in odd places: folders, signals, standard files, variables of other programs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from chatapp.inherited import heeded
from chatapp.up.grounds import free_port
from chatapp.up.surroundings import surroundings
from tests.chatapp.folders import checkout, long_folder
from tests.chatapp.starting import ROOT, WAIT_S, environment, processes_on, running, traces_on

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc to see which processes are left")

SHELL = ("sh", "-c")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return environment(tmp_path / "var", SIDESTREAM_LLAMACPP_URL="http://127.0.0.1:9")


def open_to_others(var: Path) -> list[Path]:
    return [path for path in (var, *var.rglob("*")) if path.lstat().st_mode & 0o077]


# Folders


def test_it_runs_on_a_folder_of_any_name(tmp_path: Path) -> None:
    name = "C# what?now 50%25 é 🙂 +&=[]\n$HOME"
    var = tmp_path / name / "var"
    env = environment(var, SIDESTREAM_LLAMACPP_URL="http://127.0.0.1:9")
    with running(env, wrapper=(*SHELL, 'umask 0; exec "$@"', "sh")) as up:
        up.is_ready()
        assert (var / "sidestream.sqlite3").stat().st_size > 0
        assert open_to_others(var) == []
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert traces_on(var) == []


def test_two_checkouts_share_nothing(tmp_path: Path) -> None:
    env = environment(tmp_path, SIDESTREAM_VAR="", SIDESTREAM_LLAMACPP_URL="http://127.0.0.1:9")
    one, other = (checkout(tmp_path / "C#" / name) for name in ("one", "two %25"))
    with running(env, root=one) as up, running(env, root=other) as second:
        up.is_ready()
        second.is_ready()
    assert [path.name for path in tmp_path.iterdir()] == ["C#"]
    assert all((root / "var" / "sidestream.sqlite3").exists() for root in (one, other))


def test_a_path_of_218_bytes_is_short_enough(tmp_path: Path) -> None:
    var = long_folder(tmp_path)
    assert len(str(var)) == 218
    with running(environment(var, SIDESTREAM_LLAMACPP_URL="http://127.0.0.1:9")) as up:
        up.is_ready()


def checked_from_a_folder_that_is_gone(env: dict[str, str], gone: Path) -> tuple[int, str]:
    gone.mkdir()
    script = 'cd "$1" && rmdir "$1" && exec "$2" "$3" check'
    command = [*SHELL, script, "sh", str(gone), sys.executable, str(ROOT / "manage.py")]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stderr


def test_it_may_stand_in_a_folder_that_is_gone(env: dict[str, str], tmp_path: Path) -> None:
    assert checked_from_a_folder_that_is_gone(env, tmp_path / "gone") == (0, "")


def test_a_path_that_is_relative_to_a_folder_that_is_gone_is_refused(env: dict[str, str], tmp_path: Path) -> None:
    sentence = "SIDESTREAM_VAR must be an absolute path here, since no folder is known before it.\n"
    assert checked_from_a_folder_that_is_gone({**env, "SIDESTREAM_VAR": "var"}, tmp_path / "gone") == (2, sentence)


# Signals


def test_an_ignored_signal_stays_ignored_but_for_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)
    assert heeded([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]) == [signal.SIGTERM]


def test_it_goes_on_after_signals_that_were_ignored_at_its_start(env: dict[str, str]) -> None:
    """As under `nohup`, and behind the `&` of a shell without job control."""
    with running(env, wrapper=("nohup", *SHELL, 'trap "" INT; exec "$@"', "sh")) as up:
        up.is_ready()
        os.kill(up.pid, signal.SIGHUP)
        os.kill(up.pid, signal.SIGINT)
        assert up.stop(signal.SIGTERM) == 0
    # Had they been heeded, SIGTERM would have been the third.
    assert "killing what still runs" not in up.text


def test_no_blocked_or_ignored_signal_keeps_it_from_ending(env: dict[str, str]) -> None:
    program = (
        "import os, signal, sys;"
        "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals());"
        "[signal.signal(n, signal.SIG_IGN) for n in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP)];"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    with running(env, wrapper=(sys.executable, "-c", program)) as up:
        up.is_ready()
        first = up.process_of("worker")
        assert _ignored_and_blocked(first) == (0, 0)
        os.kill(first, signal.SIGKILL)
        assert up.process_of("worker", "again") != first
        assert up.stop(signal.SIGTERM) == 0
    assert traces_on(Path(env["SIDESTREAM_VAR"])) == []


def _ignored_and_blocked(pid: int) -> tuple[int, int]:
    """Give the two masks without what Python itself ignores."""
    lines = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    usual = sum(1 << (number - 1) for number in (signal.SIGPIPE, signal.SIGXFSZ))
    return int(lines["SigIgn"], 16) & ~usual, int(lines["SigBlk"], 16)


# Standard files


@contextmanager
def unheard(env: dict[str, str], redirection: str, **more: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run it where nobody hears it; it is ready inside the block, and must end well after it."""
    port = free_port()
    script = f'exec "$@" {redirection}'
    command = [*SHELL, script, "sh", sys.executable, "manage.py", "up", "--port", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, env=env, start_new_session=True, **more)
    try:
        _until_it_answers(process, port)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(WAIT_S)
    assert code == 0
    assert processes_on(Path(env["SIDESTREAM_VAR"])) == []


def _until_it_answers(process: subprocess.Popen[bytes], port: int) -> None:
    give_up_at = time.monotonic() + WAIT_S
    while process.poll() is None and time.monotonic() < give_up_at:
        with suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
            return
        time.sleep(0.05)
    pytest.fail(f"it did not become ready; exit code {process.poll()}")


@pytest.mark.parametrize("redirection", ["<&- >&- 2>&-", ">/dev/full 2>&1"])
def test_it_runs_without_anywhere_to_write(env: dict[str, str], redirection: str) -> None:
    with unheard(env, redirection):
        assert open_to_others(Path(env["SIDESTREAM_VAR"])) == []


def test_a_reader_that_leaves_takes_nothing_down(env: dict[str, str]) -> None:
    read, write = os.pipe()
    with unheard(env, "2>&1", stdout=write):
        os.close(write)
        assert os.read(read, 1)
        os.close(read)


# Variables


def test_what_other_programs_left_in_the_environment_means_nothing_here(env: dict[str, str], tmp_path: Path) -> None:
    decoy = tmp_path / "decoy"
    for package in ("chatapp", "streaming"):
        (decoy / package).mkdir(parents=True)
        (decoy / package / "__init__.py").write_text("raise SystemExit('the wrong one')")
    stray = {
        "DJANGO_SETTINGS_MODULE": "otherproject.settings", "CELERY_BROKER_URL": "amqp://nowhere", "LOADER": "nowhere",
        "BROKER_URL": "amqp://nowhere", "CONFIG_MODULE": "otherproject.celeryconfig", "CELERY_WORKER_BEAT": "1",
        "PYTHONPATH": str(decoy), "PYTHONSAFEPATH": "1", "PYTHONINSPECT": "1",
        "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C", "TZ": "Odd/Place",
        "VIRTUAL_ENV": str(decoy), "PYTHONSTARTUP": str(decoy / "none.py"), "PYTHONWARNINGS": "error",
        "ASGI_THREADS": "many", "AUTOBAHN_USE_NVX": "1", "REMAP_SIGTERM": "SIGQUIT", "KOMBU_LOG_DEBUG": "1",
        "SIDESTREAM_VAR": str(tmp_path / "é"),
    }  # fmt: skip
    bare = {name: value for name, value in env.items() if name not in ("HOME", "USER", "LOGNAME")}
    with running({**bare, **stray}) as up:
        up.is_ready()
    assert (tmp_path / "é" / "sidestream.sqlite3").exists()


def test_only_what_means_something_to_a_program_of_ours_is_left_out() -> None:
    kept = {"PATH": "/bin", "OPENAI_API_KEY": "k", "DJANGO_COLORS": "dark", "PYTHONPATH": "/x"}
    stray = {"CELERY_BROKER_URL": "amqp://", "LOADER": "x", "PYTHONWARNINGS": "error", "ASGI_THREADS": "x"}
    assert surroundings({**kept, **stray}) == {**kept, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}


@pytest.mark.parametrize(
    "program",
    [
        "import chatapp.asgi; from django.conf import settings; print(settings.ROOT_URLCONF)",
        "from chatapp.celery import app; print(app.conf.broker_url)",
    ],
)
def test_processes_started_by_hand_use_our_settings_too(env: dict[str, str], program: str) -> None:
    stray = {"DJANGO_SETTINGS_MODULE": "otherproject.settings", "CELERY_BROKER_URL": "amqp://nowhere"}
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env={**env, **stray}, capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() in ("chatapp.urls", "redis://127.0.0.1:6379/0")
