"""Redis's files outlive the server that wrote them: the next one goes on with them, or says that it cannot."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import pytest
import redis

from chatapp.up.console import Console
from chatapp.up.redis_files import look_at
from chatapp.up.redis_formats import Choice, Files, Format, Layout, Server, choose
from chatapp.up.redis_server import find_servers
from chatapp.up.stack import Wishes, planned
from chatapp.up.supervisor import Supervisor

ROOT = Path(__file__).resolve().parents[2]
REDIS_6, REDIS_7 = Server("six", "redis", (6, 2, 5)), Server("seven", "redis", (7, 0, 15))
REDIS_72, REDIS_74 = Server("seven-two", "redis", (7, 2, 4)), Server("seven-four", "redis", (7, 4, 1))
REDIS_9, VALKEY_8 = Server("nine", "redis", (9, 0, 0)), Server("valkey-eight", "valkey", (8, 1, 3))
VALKEY_9, VALKEY_99 = Server("valkey", "valkey", (9, 1, 2)), Server("valkey-99", "valkey", (99, 0))
ALL = (REDIS_6, REDIS_7, REDIS_72, REDIS_74, REDIS_9, VALKEY_8, VALKEY_9, VALKEY_99)


@pytest.mark.parametrize(
    ("layout", "written", "readers"),
    [
        (Layout.SINGLE, None, ALL),
        (Layout.SINGLE, Format("redis", 9), ALL),
        (Layout.PARTS, None, ALL[1:]),
        (Layout.PARTS, Format("redis", 10), ALL[1:]),
        (Layout.PARTS, Format("redis", 11), ALL[2:]),
        (Layout.PARTS, Format("redis", 12), (REDIS_74, REDIS_9)),
        (Layout.PARTS, Format("redis", 15), (REDIS_9,)),
        (Layout.PARTS, Format("valkey", 80), (VALKEY_9, VALKEY_99)),
        (Layout.PARTS, Format("valkey", 90), (VALKEY_99,)),
        (Layout.SINGLE_AFTER_PARTS, None, (REDIS_6,)),
    ],
)
def test_only_who_knows_the_layout_and_the_format_is_given_the_files(
    layout: Layout, written: Format | None, readers: tuple[Server, ...]
) -> None:
    files = Files(layout, format=written)
    assert tuple(server for server in ALL if not choose([server], files).fault) == readers


def test_a_server_that_reads_the_files_is_preferred_to_one_that_comes_first() -> None:
    assert choose([REDIS_7, VALKEY_9], Files(Layout.PARTS, format=Format("valkey", 80))) == Choice(VALKEY_9)


def test_of_several_that_read_the_files_the_first_is_taken() -> None:
    assert choose([REDIS_7, VALKEY_9], Files(Layout.PARTS, format=Format("redis", 10))) == Choice(REDIS_7)


def test_without_files_the_first_server_is_taken() -> None:
    assert choose([REDIS_7, VALKEY_9], None) == Choice(REDIS_7)


def test_files_that_none_reads_are_to_be_set_aside_and_all_that_were_asked_are_named() -> None:
    choice = choose([REDIS_7, REDIS_6], Files(Layout.PARTS, format=Format("valkey", 80)))
    assert choice == Choice(REDIS_7, "Redis 7.0.15 and Redis 6.2.5 cannot read them")


def test_what_no_server_would_miss_aloud_is_to_be_set_aside() -> None:
    assert (
        choose([REDIS_7], Files(Layout.PARTS, fault="their manifest is missing")).fault == "their manifest is missing"
    )


# From here on with real servers.


@cache
def installed() -> dict[str, Server]:
    """Give what this machine has; asked first before a test hides some of it."""
    return {f"{server.kind} {server.version[0]}": server for server in find_servers()}


class Machine:
    """A machine with certain servers on its PATH, and a state folder."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.var = tmp_path / "var"
        self.text = ""
        self._path = tmp_path / "bin"
        self._monkeypatch = monkeypatch
        installed()
        self._monkeypatch.setattr("chatapp.up.redis_server._BUNDLED", ())

    def has(self, server: str) -> None:
        """Let the machine have this server only."""
        found = installed().get(server)
        if found is None:
            pytest.skip(f"this machine has no {server}, only {', '.join(installed())}")
        shutil.rmtree(self._path, ignore_errors=True)
        self._path.mkdir(parents=True)
        (self._path / f"{found.kind}-server").symlink_to(found.binary)
        self._monkeypatch.setenv("PATH", str(self._path))

    @asynccontextmanager
    async def up(self) -> AsyncIterator[redis.Redis]:
        """Run what `up` would run of Redis; the text is what it told."""
        out, ready = io.StringIO(), asyncio.Event()
        with planned(Wishes(ROOT, self.var, ROOT / "chatapp" / "models.toml", port=0), self._environ()) as plan:
            service = next(one for one in plan.services if one.name == "redis")
            for note in plan.notes:
                out.write(f"{note}\n")
            supervisor = Supervisor([service], Console(out, ["redis"]))
            running = asyncio.create_task(supervisor.run(ready.set))
            waiting = asyncio.create_task(ready.wait())
            try:
                await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED, timeout=20)
                assert ready.is_set(), out.getvalue()
                with redis.Redis(unix_socket_path=_socket(service.command)) as client:
                    yield client
            finally:
                waiting.cancel()
                supervisor.stop()
                await asyncio.gather(running, return_exceptions=True)
                self.text = out.getvalue()

    def aside(self) -> list[Path]:
        return sorted(self.var.glob("redis.set-aside-*"))

    def _environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in ("REDIS_URL", "DATABASE_URL")}
        return {**kept, "SIDESTREAM_LLAMACPP_URL": "http://127.0.0.1:9"}


def _socket(command: object) -> str:
    words = list(command)  # type: ignore[call-overload]
    return str(words[words.index("--unixsocket") + 1])


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


async def _write(machine: Machine, *, compact: bool = True) -> None:
    async with machine.up() as client:
        client.set("kept", "yes")
        if compact:
            client.bgrewriteaof()
            while (state := client.info("persistence"))["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"]:
                await asyncio.sleep(0)


SERVERS = ("redis 6", "redis 7", "valkey 9")


@pytest.mark.parametrize("compact", [True, False], ids=["compacted", "commands only"])
@pytest.mark.parametrize("found", SERVERS)
@pytest.mark.parametrize("writer", SERVERS)
async def test_the_next_server_goes_on_or_says_that_it_cannot(
    machine: Machine, writer: str, found: str, compact: bool
) -> None:
    machine.has(writer)
    await _write(machine, compact=compact)
    machine.has(found)
    async with machine.up() as client:
        kept = client.get("kept")
    # Nothing is lost without a word, and nothing is told where nothing is lost.
    goes_on = SERVERS.index(writer) <= SERVERS.index(found)
    assert (kept == b"yes", machine.aside() == [], "set aside" not in machine.text) == (goes_on,) * 3
    if not goes_on:
        assert f"the files that {installed()[writer]} wrote were set aside" in machine.text
        assert str(machine.aside()[0]) in machine.text


async def test_a_server_that_can_go_on_is_taken_from_the_packages(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.has("redis 7")
    six, seven = installed().get("redis 6"), installed()["redis 7"]
    if six is None:
        pytest.skip("this machine has no redis 6")
    await _write(machine)
    monkeypatch.setattr("chatapp.up.redis_server._bundled_servers", lambda: [seven.binary])
    machine.has("redis 6")
    async with machine.up() as client:
        assert client.get("kept") == b"yes"
    assert f"{seven} is started, because {six} cannot read the files of the last one" in machine.text


async def test_who_wrote_is_recorded_once_the_server_is_up(machine: Machine) -> None:
    machine.has("redis 7")
    await _write(machine)
    version = ".".join(map(str, installed()["redis 7"].version))
    assert json.loads((machine.var / "redis" / "written-by.json").read_text()) == {"kind": "redis", "version": version}


async def test_files_without_a_record_say_themselves_who_wrote_them(machine: Machine) -> None:
    machine.has("redis 7")
    await _write(machine)
    (machine.var / "redis" / "written-by.json").unlink()
    assert (found := look_at(machine.var / "redis"))
    assert found.writer == str(installed()["redis 7"])


@pytest.mark.parametrize("record", ["", "{", "[]", '{"kind": "../../x", "version": "1"}', '{"kind": 1, "version": 2}'])
async def test_a_record_that_makes_no_sense_is_passed_over(machine: Machine, record: str) -> None:
    machine.has("redis 7")
    await _write(machine)
    (machine.var / "redis" / "written-by.json").write_text(record)
    assert (found := look_at(machine.var / "redis"))
    assert found.writer == str(installed()["redis 7"])


def _cut(path: Path, at: int) -> None:
    path.write_bytes(path.read_bytes()[:at])


def _spoil(path: Path) -> None:
    path.write_bytes(b"*1\r\n$3\r\nSET\r\n" + bytes(range(256)))


def _one(folder: Path, pattern: str) -> Path:
    return next(iter(folder.rglob(pattern)))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no manifest": lambda folder: _one(folder, "*.manifest").unlink(),
    "empty manifest": lambda folder: _cut(_one(folder, "*.manifest"), 0),
    "half a manifest": lambda folder: _cut(_one(folder, "*.manifest"), 50),
    "no base": lambda folder: _one(folder, "*.base.rdb").unlink(),
    "empty base": lambda folder: _cut(_one(folder, "*.base.rdb"), 0),
    "half a base": lambda folder: _cut(_one(folder, "*.base.rdb"), 40),
    "garbage for a base": lambda folder: _spoil(_one(folder, "*.base.rdb")),
    "garbage for commands": lambda folder: _spoil(_one(folder, "*.incr.aof")),
    "no commands": lambda folder: _one(folder, "*.incr.aof").unlink(),
    "a file for a folder": lambda folder: shutil.rmtree(folder / "appendonlydir") or _spoil(folder / "appendonlydir"),  # type: ignore[func-returns-value]
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("server", ["redis 7", "valkey 9"])
async def test_damaged_files_are_set_aside_with_a_sentence(machine: Machine, server: str, damage: str) -> None:
    machine.has(server)
    await _write(machine)
    DAMAGES[damage](machine.var / "redis")
    async with machine.up() as client:
        assert client.get("kept") is None
    assert machine.text.count("Redis starts empty: the files") == 1
    assert machine.text.count("starting it again") == 0
    assert len(machine.aside()) == 1


def _make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "spoil", [_spoil, lambda path: _cut(path, 40), _make_folder], ids=["garbage", "half", "a folder for a file"]
)
async def test_a_damaged_single_file_is_set_aside_too(machine: Machine, spoil: Callable[[Path], None]) -> None:
    machine.has("redis 6")
    await _write(machine)
    spoil(machine.var / "redis" / "appendonly.aof")
    async with machine.up() as client:
        assert client.get("kept") is None
    assert len(machine.aside()) == 1


async def test_what_was_cut_in_the_last_command_is_no_damage(machine: Machine) -> None:
    """A kill -9 leaves that, and Redis knows it."""
    machine.has("redis 7")
    await _write(machine, compact=False)
    commands = _one(machine.var / "redis", "*.incr.aof")
    with commands.open("ab") as file:
        file.write(b"*3\r\n$3\r\nSET\r\n$4\r\nlo")
    async with machine.up() as client:
        assert client.get("kept") == b"yes"
    assert machine.aside() == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads files of any mode")
async def test_files_that_may_not_be_read_are_set_aside(machine: Machine) -> None:
    machine.has("redis 7")
    await _write(machine)
    _one(machine.var / "redis", "*.base.rdb").chmod(0)
    async with machine.up() as client:
        assert client.get("kept") is None
    assert "because they cannot be opened (permission denied)" in machine.text


async def test_a_server_that_starts_nowhere_leaves_the_files_where_they_are(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.has("redis 7")
    await _write(machine)
    broken = machine.var.parent / "bin" / "redis-server"
    broken.unlink()
    broken.write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo 'Redis server v=7.0.15' || exit 1\n")
    broken.chmod(0o700)
    with pytest.raises(AssertionError):
        async with machine.up():
            pass
    assert "redis ended with exit code 1; starting it again" in machine.text
    assert machine.aside() == []


async def test_what_was_set_aside_before_stays(machine: Machine) -> None:
    machine.has("redis 7")
    for _ in range(2):
        await _write(machine)
        _one(machine.var / "redis", "*.manifest").unlink()
        async with machine.up():
            pass
    assert len(machine.aside()) == 2
