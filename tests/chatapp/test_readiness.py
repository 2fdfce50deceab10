"""Ready means able to write, and stays true while it runs."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from redis import Redis

from chatapp import presence
from chatapp.readiness import Trial
from chatapp.up.console import Console
from chatapp.up.watch import Watch
from chatapp.wiring import web
from tests.chatapp.people import Person
from tests.chatapp.test_up_command import Up, environment, running


@pytest.fixture
async def trial(site: None) -> AsyncIterator[Trial]:
    """With a worker that lives."""
    await web().redis.zadd(presence.KEY, {"host:1": (await web().redis.time())[0] * 1000})
    trial = Trial(web().redis)
    yield trial
    trial.close()


@pytest.mark.django_db(transaction=True)
class TestTrial:
    async def test_where_all_can_be_written_nothing_is_missing(self, trial: Trial) -> None:
        assert await trial.faults() == {}

    async def test_a_locked_database_is_told_and_does_not_hold_up_the_answer(self, trial: Trial) -> None:
        if connection.vendor != "sqlite":
            pytest.skip("PostgreSQL locks rows")
        with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            async with asyncio.timeout(4):
                assert await trial.faults() == {"database": "The database is locked: another process holds it."}

    async def test_a_database_without_its_tables_is_told_with_the_remedy(self, trial: Trial) -> None:
        def rename(old: str, new: str) -> None:
            with connection.cursor() as cursor:
                cursor.execute(f"ALTER TABLE {old} RENAME TO {new}")
            connection.close()

        await asyncio.to_thread(rename, "chatapp_readiness", "elsewhere")
        try:
            assert (await trial.faults())["database"] == "The database is not up to date: run manage.py migrate."
        finally:
            await asyncio.to_thread(rename, "elsewhere", "chatapp_readiness")

    @pytest.mark.parametrize(
        ("name", "value", "usual", "sentence"),
        [
            ("maxmemory", "1", "0", "Redis takes no writes: its memory is full."),
            ("min-replicas-to-write", "1", "0", "Redis refuses a write."),
        ],
    )
    async def test_a_redis_that_takes_no_writes_is_told(
        self, trial: Trial, name: str, value: str, usual: str, sentence: str
    ) -> None:
        redis: Any = web().redis
        await redis.config_set(name, value)
        try:
            assert await trial.faults() == {"redis": sentence}
        finally:
            await redis.config_set(name, usual)

    async def test_a_replica_is_told(self, trial: Trial) -> None:
        redis: Any = web().redis
        await redis.replicaof("127.0.0.1", "1")
        try:
            assert await trial.faults() == {"redis": "Redis takes no writes: it is a replica."}
        finally:
            await redis.replicaof("NO", "ONE")

    async def test_many_who_ask_share_one_look(self, trial: Trial) -> None:
        redis: Any = web().redis
        await redis.config_resetstat()
        await asyncio.gather(*(trial.faults() for _ in range(50)))
        await trial.faults()
        assert (await redis.info("commandstats"))["cmdstat_set"]["calls"] == 1

    async def test_the_reason_is_in_the_answer(self, guest: Person) -> None:
        answer = (await guest.get("/readyz")).json()
        assert answer["why"] == {"worker": "No worker takes answers: none has given a sign of life for 10 s."}


class Looks:
    """Answers each look with the next of those given, and ends the watch after the last."""

    def __init__(self, *answers: Mapping[str, str]) -> None:
        self._answers = list(answers)
        self.over = asyncio.Event()

    async def __call__(self) -> Mapping[str, str]:
        if not self._answers:
            self.over.set()
            await asyncio.Event().wait()
        return self._answers.pop(0)


FULL, GONE = {"database": "The disk is full."}, {"redis": "Redis is gone."}


@pytest.mark.parametrize(
    ("looks", "lines"),
    [
        ([{}], ["READY"]),
        ([{}, {}, {}], ["READY"]),
        ([FULL, {}], ["READY"]),
        ([FULL, FULL, FULL, {}], ["not ready: The disk is full.", "READY"]),
        ([{}, FULL, {}], ["READY"]),
        ([{}, FULL, FULL, FULL, {}, {}], ["READY", "not ready: The disk is full.", "ready again"]),
        ([{}, FULL, GONE, FULL, {}], ["READY"]),
        (
            [{}, FULL, FULL, GONE, GONE, {}],
            ["READY", "not ready: The disk is full.", "not ready: Redis is gone.", "ready again"],
        ),
    ],
)
async def test_each_change_is_told_once(looks: list[Mapping[str, str]], lines: list[str]) -> None:
    out, answers = io.StringIO(), Looks(*looks)
    watch = Watch(answers, Console(out, []), lambda: out.write("up | READY\n") and None, every_s=0, again_s=0)
    watching = asyncio.create_task(watch.run())
    await answers.over.wait()
    watching.cancel()
    assert [line.partition("| ")[2] for line in out.getvalue().splitlines()] == lines


# The real thing.


def answer_of(up: Up) -> tuple[int, dict[str, Any]]:
    address = up.wait_for(r"^Sidestream is ready at (\S+)$")[1]
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as exc:
        return exc.code, json.load(exc)


def test_a_folder_that_is_removed_while_it_runs_is_told(tmp_path: Path) -> None:
    with running(environment(tmp_path / "var", SIDESTREAM_LLAMACPP_URL="http://127.0.0.1:9")) as up:
        assert answer_of(up) == (200, {"ready": True, "missing": [], "why": {}})
        shutil.rmtree(tmp_path / "var")
        up.wait_for(rf"^up .*not ready: {tmp_path}/var was removed while Sidestream ran\. Stop it")
        status, answer = answer_of(up)
        assert (status, answer["why"]["database"]) == (503, "The database is gone: its file was removed.")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 MB of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk, and not in every container")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_is_told_once_and_so_is_its_end(small_disk: Path) -> None:
    with running(environment(small_disk / "var", SIDESTREAM_LLAMACPP_URL="http://127.0.0.1:9")) as up:
        up.wait_for("^Sidestream is ready at ")
        filling = small_disk / "filling"
        subprocess.run(["dd", "if=/dev/zero", f"of={filling}", "bs=4k"], capture_output=True, check=False)
        up.wait_for(r"^up .*not ready: .*")
        assert answer_of(up)[0] == 503
        filling.unlink()
        up.wait_for(r"^up .*ready again")
        assert answer_of(up)[0] == 200
    # Further parts may fail while it is full; each is told by `up` alone.
    assert not re.search(r"^web .*ready", up.text, re.MULTILINE)
    assert len(re.findall("ready again$", up.text, re.MULTILINE)) == 1


def test_a_redis_that_is_a_replica_for_a_while_is_told_and_costs_no_worker(tmp_path: Path) -> None:
    """Such as in a failover. What the worker drives would end with it."""
    with running(environment(tmp_path / "var", SIDESTREAM_LLAMACPP_URL="http://127.0.0.1:9")) as up:
        up.wait_for("^Sidestream is ready at ")
        with closing(Redis(unix_socket_path=str(tmp_path / "var" / "redis" / "redis.sock"))) as redis:
            redis.replicaof("127.0.0.1", "1")
            up.wait_for(r"^up .*not ready: Redis takes no writes: it is a replica\.")
            redis.replicaof("no", "one")
            up.wait_for(r"^up .*ready again")
    assert not re.search("worker ended|CRITICAL|Traceback", up.text)


@pytest.mark.skipif(sys.platform != "linux", reason="remounts a tmpfs")
def test_a_disk_that_becomes_read_only_is_told_and_so_is_its_end(small_disk: Path) -> None:
    with running(environment(small_disk / "var", SIDESTREAM_LLAMACPP_URL="http://127.0.0.1:9")) as up:
        up.wait_for("^Sidestream is ready at ")
        # Open files keep a file system from it, so a second mount of it at the same place becomes read-only.
        subprocess.run(["mount", "--bind", str(small_disk), str(small_disk)], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", str(small_disk)], check=True)
        try:
            up.wait_for(r"^up .*not ready: .*read-only")
            assert answer_of(up)[0] == 503
        finally:
            subprocess.run(["umount", "--lazy", str(small_disk)], check=True)
        up.wait_for(r"^up .*ready again")
