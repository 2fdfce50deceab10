"""Stand-in services, run by the real supervisor as real processes."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from chatapp.up.backoff import Backoff
from chatapp.up.console import Console
from chatapp.up.refusal import StartFailed
from chatapp.up.service import Service
from chatapp.up.supervisor import Supervisor

ROOT = Path(__file__).resolve().parents[2]
QUICK = Backoff(first_s=0.01, cap_s=0.05)


async def until(true: Callable[[], object]) -> None:
    """Wait for a state; the suite's timeout is the bound."""
    while not true():
        await asyncio.sleep(0.005)


async def at_once(_pid: int) -> bool:
    return True


def service(name: str, script: str = "exec sleep 60", *after: str, errand: bool = False, grace_s: float = 5) -> Service:
    ready = None if errand else at_once
    return Service(name, ["/bin/sh", "-c", script], f"{name} to come", ready, after, dict(os.environ), grace_s=grace_s)


class Stage:
    """A supervisor at work, and what it has written so far."""

    def __init__(self, services: list[Service], progress_every_s: float = 60) -> None:
        self._out = io.StringIO()
        names = [service.name for service in services]
        self.supervisor = Supervisor(
            services, Console(self._out, names), backoff=QUICK, progress_every_s=progress_every_s
        )
        self.run = asyncio.create_task(self.supervisor.run(self._announce))

    def _announce(self) -> None:
        self._out.write("READY\n")

    @property
    def text(self) -> str:
        return self._out.getvalue()

    @property
    def lines(self) -> list[str]:
        return [re.sub(r" +\|", " |", line) for line in self.text.splitlines()]

    def said(self, text: str) -> bool:
        return text in self.text

    def pids(self, name: str) -> list[int]:
        """Give the process ids that the service has printed as `pid N`."""
        return [int(line.split()[-1]) for line in self.lines if line.startswith(f"{name} | pid ")]


@pytest.fixture
async def stage() -> AsyncIterator[Callable[..., Stage]]:
    stages: list[Stage] = []

    def make(*services: Service, progress_every_s: float = 60) -> Stage:
        stages.append(Stage(list(services), progress_every_s))
        return stages[-1]

    yield make
    for each in stages:
        each.supervisor.stop()
        with contextlib.suppress(StartFailed):
            await each.run


def gone(pid: int) -> bool:
    """Tell whether the process has ended; one that only waits to be collected has."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return not Path("/proc").exists() or not Path(f"/proc/{pid}").exists()


async def test_what_depends_on_an_errand_starts_after_it(stage: Callable[..., Stage], tmp_path: Path) -> None:
    errand = service("errand", f"touch {tmp_path}/done", errand=True)
    web = service("web", f"test -e {tmp_path}/done && echo after; exec sleep 60", "errand")
    running = stage(web, errand)
    await until(lambda: running.said("web    | after"))


async def test_readiness_is_announced_when_the_last_one_is_ready(stage: Callable[..., Stage]) -> None:
    running = stage(service("first"), service("second", "exec sleep 60", "first"))
    await until(lambda: running.said("READY"))
    assert "second is ready" in running.text.partition("READY")[0]


async def test_a_process_that_was_killed_is_started_again(stage: Callable[..., Stage]) -> None:
    running = stage(service("web", "echo pid $$; exec sleep 60"))
    await until(lambda: running.said("READY") and running.pids("web"))
    os.kill(running.pids("web")[0], signal.SIGKILL)
    await until(lambda: len(running.pids("web")) == 2)
    assert running.said("web was killed by SIGKILL; starting it again in 0.0 s")


async def test_readiness_is_announced_only_once(stage: Callable[..., Stage]) -> None:
    running = stage(service("web", "echo pid $$; exec sleep 60"))
    await until(lambda: running.said("READY") and running.pids("web"))
    os.kill(running.pids("web")[0], signal.SIGKILL)
    await until(lambda: running.said("web is ready again"))
    assert running.text.count("READY") == 1


async def test_the_death_of_one_leaves_the_others_alone(stage: Callable[..., Stage]) -> None:
    running = stage(
        service("redis", "echo pid $$; exec sleep 60"), service("web", "echo pid $$; exec sleep 60", "redis")
    )
    await until(lambda: running.pids("redis") and running.pids("web"))
    os.kill(running.pids("redis")[0], signal.SIGKILL)
    await until(lambda: len(running.pids("redis")) == 2)
    assert len(running.pids("web")) == 1


async def test_stopping_goes_backwards(stage: Callable[..., Stage]) -> None:
    last_words = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.02; done"
    running = stage(service("redis", last_words), service("web", last_words, "redis"))
    await until(lambda: running.text.count("| up") == 2)
    running.supervisor.stop()
    await running.run
    assert [line for line in running.lines if line.endswith("bye")] == ["web | bye", "redis | bye"]


async def test_a_process_that_ignores_the_request_to_end_is_killed(stage: Callable[..., Stage]) -> None:
    deaf = service("deaf", "trap '' TERM; echo pid $$; while :; do sleep 0.02; done", grace_s=0.1)
    running = stage(deaf)
    await until(lambda: running.pids("deaf"))
    running.supervisor.stop()
    await running.run
    assert running.said("deaf did not end within 0.1 s; killing it")
    assert gone(running.pids("deaf")[0])


async def test_a_second_stop_does_not_wait_for_the_grace_period(stage: Callable[..., Stage]) -> None:
    deaf = service("deaf", "trap '' TERM; echo pid $$; while :; do sleep 0.02; done", grace_s=600)
    running = stage(deaf)
    await until(lambda: running.pids("deaf"))
    running.supervisor.stop()
    running.supervisor.stop()
    await running.run
    assert gone(running.pids("deaf")[0])


async def test_what_a_process_started_ends_with_it(stage: Callable[..., Stage]) -> None:
    running = stage(service("web", "sleep 60 & echo pid $!; exec sleep 60"))
    await until(lambda: running.pids("web"))
    running.supervisor.stop()
    await running.run
    await until(lambda: gone(running.pids("web")[0]))


async def test_what_a_killed_process_left_behind_ends_too(stage: Callable[..., Stage]) -> None:
    running = stage(service("web", "echo pid $$; sleep 60 & echo pid $!; wait"))
    await until(lambda: len(running.pids("web")) == 2)
    os.kill(running.pids("web")[0], signal.SIGKILL)
    await until(lambda: gone(running.pids("web")[1]))


async def test_a_service_that_cannot_start_is_given_up_after_three_tries(stage: Callable[..., Stage]) -> None:
    async def never(_pid: int) -> bool:
        return False

    running = stage(Service("web", ["/bin/sh", "-c", "echo no; exit 3"], "web", never, env=dict(os.environ)))
    with pytest.raises(StartFailed, match="web ended with exit code 3 3 times before it was ready"):
        await running.run
    assert running.lines.count("web | no") == 3


async def test_an_errand_that_fails_ends_the_others(stage: Callable[..., Stage]) -> None:
    waits = "echo pid $$; exec sleep 60"
    running = stage(service("redis", waits), service("database", "sleep 0.1; exit 1", errand=True))
    with pytest.raises(StartFailed, match="database ended with exit code 1 before it was ready"):
        await running.run
    assert all(map(gone, running.pids("redis")))


async def test_a_command_that_is_not_there_is_named(stage: Callable[..., Stage]) -> None:
    running = stage(Service("web", ["/no/such/command"], "web", at_once, env={}))
    with pytest.raises(StartFailed, match=r"web cannot be started: .*/no/such/command"):
        await running.run


async def test_the_last_words_of_a_process_are_not_lost(stage: Callable[..., Stage]) -> None:
    script = "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done; printf end"
    running = stage(service("errand", script, errand=True))
    await until(lambda: running.said("READY"))
    assert "errand | end" in running.lines


async def test_a_slow_start_tells_what_is_waited_for(stage: Callable[..., Stage], tmp_path: Path) -> None:
    async def when_told(_pid: int) -> bool:
        return (tmp_path / "go").exists()

    slow = Service("model", ["sleep", "60"], "the model to load", when_told, env=dict(os.environ))
    running = stage(slow, service("web", "exec sleep 60", "model"), progress_every_s=0.02)
    await until(lambda: running.said("up    | waiting for the model to load (0 s)\n"))
    (tmp_path / "go").touch()
    await until(lambda: running.said("READY"))


async def test_stopping_during_the_start_ends_what_had_started(stage: Callable[..., Stage]) -> None:
    async def never(_pid: int) -> bool:
        return False

    slow = Service("model", ["/bin/sh", "-c", "echo pid $$; exec sleep 60"], "it", never, env=dict(os.environ))
    running = stage(slow, service("web", "exec sleep 60", "model"))
    await until(lambda: running.pids("model"))
    running.supervisor.stop()
    await running.run
    assert gone(running.pids("model")[0])
    assert not running.said("READY")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent was killed")
def test_nothing_outlives_an_up_that_was_killed() -> None:
    program = """
import asyncio, os, sys
from chatapp.up.console import Console
from chatapp.up.service import Service
from chatapp.up.supervisor import Supervisor
async def ready(pid): return True
service = Service("web", ["/bin/sh", "-c", "echo pid $$; exec sleep 60"], "web", ready, env=dict(os.environ))
asyncio.run(Supervisor([service], Console(sys.stdout, ["web"])).run(lambda: None))
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=ROOT) as up:
        assert up.stdout
        pid = next(int(line.split()[-1]) for line in up.stdout if "| pid" in line)
        up.kill()
        up.wait()
        assert up.stdout.read() is not None  # Its end comes when the last process that could write has ended.
    asyncio.run(asyncio.wait_for(until(lambda: gone(pid)), 10))
