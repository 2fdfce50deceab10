"""What is in the way is told in a sentence, before anything is started."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chatapp.up.grounds import LOCK_NAME, check_address, free_port, make_folder, only_one
from chatapp.up.redis_server import find_server, private_redis
from chatapp.up.refusal import Refused


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_taken_port_is_named(taken_port: int) -> None:
    with pytest.raises(Refused, match=f"Port {taken_port} is already taken on 127.0.0.1"):
        check_address("127.0.0.1", taken_port)


def test_the_port_that_is_proposed_instead_can_be_used(taken_port: int) -> None:
    with pytest.raises(Refused) as refusal:
        check_address("127.0.0.1", taken_port)
    proposed = int(str(refusal.value).rpartition("--port ")[2])
    assert check_address("127.0.0.1", proposed) == ("127.0.0.1", proposed)


def test_port_zero_becomes_a_free_one() -> None:
    assert check_address("127.0.0.1", 0)[1] > 0


def test_a_name_becomes_an_address() -> None:
    assert check_address("localhost", 0)[0] in ("127.0.0.1", "::1")


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_a_host_that_is_not_ours_is_refused(host: str) -> None:
    with pytest.raises(Refused, match=f"{host} is no address of this machine"):
        check_address(host, 0)


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_number_that_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(Refused, match="A port is a number from 0 to 65535"):
        check_address("127.0.0.1", port)


def test_a_free_port_is_free() -> None:
    with socket.create_server(("127.0.0.1", free_port())) as listener:
        assert listener.getsockname()[1] > 0


def test_a_missing_folder_is_made_for_its_owner_only(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "var")
    assert (tmp_path / "a" / "var").stat().st_mode & 0o777 == 0o700


def test_the_proof_that_a_folder_can_be_written_leaves_nothing(tmp_path: Path) -> None:
    make_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_refused_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match=r"cannot write to .*file/var: not a directory. Set SIDESTREAM_VAR"):
        make_folder(tmp_path / "file" / "var")


def test_a_second_up_on_a_folder_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    with only_one(tmp_path), pytest.raises(Refused, match=rf"already runs on .* \(process {os.getpid()}\)"):
        only_one(tmp_path).__enter__()


def test_the_lock_leaves_no_file(tmp_path: Path) -> None:
    with only_one(tmp_path):
        assert (tmp_path / LOCK_NAME).exists()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_file_that_nobody_holds_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).write_text("4194305\n")
    with only_one(tmp_path):
        assert (tmp_path / LOCK_NAME).read_text() == f"{os.getpid()}\n"


def test_processes_that_outlived_their_up_keep_the_folder_locked(tmp_path: Path) -> None:
    with only_one(tmp_path) as lock:
        leftover = subprocess.Popen(["sleep", "60"], pass_fds=(lock,))
        # What a killed `up` would leave: its own number, the file, and a process that holds it.
        (tmp_path / LOCK_NAME).write_text("4194305\n")
        os.link(tmp_path / LOCK_NAME, tmp_path / "kept")
    (tmp_path / "kept").rename(tmp_path / LOCK_NAME)
    try:
        with pytest.raises(Refused, match="Processes of a Sidestream that was killed still use"):
            only_one(tmp_path, leftovers_s=0).__enter__()
    finally:
        leftover.kill()
        leftover.wait()
    with only_one(tmp_path):
        pass


@pytest.fixture
def server(tmp_path: Path) -> Callable[[str, str], str]:
    """Make a stand-in for a server binary that only knows its version."""

    def make(name: str, answer: str) -> str:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\necho '{answer}'\n")
        path.chmod(0o700)
        return str(path)

    return make


def test_a_machine_without_redis_is_told_how_to_get_one() -> None:
    with pytest.raises(Refused, match=r"No Redis or Valkey .* apt-get install redis-server.* or set REDIS_URL"):
        find_server(lambda _name: None, list)


def test_the_redis_of_the_machine_comes_first(server: Callable[[str, str], str]) -> None:
    redis = server("redis", "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64")
    valkey = server("valkey", "Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64")
    assert find_server({"redis-server": redis, "valkey-server": valkey}.get, list) == redis


def test_a_valkey_does_as_well(server: Callable[[str, str], str]) -> None:
    valkey = server("valkey", "Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64")
    assert find_server({"valkey-server": valkey}.get, list) == valkey


def test_a_redis_that_is_too_old_is_passed_over(server: Callable[[str, str], str]) -> None:
    old, bundled = server("old", "Redis server v=5.0.7"), server("bundled", "Redis server v=6.2.5")
    assert find_server({"redis-server": old}.get, lambda: [bundled]) == bundled


def test_a_binary_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    with pytest.raises(Refused):
        find_server(lambda _name: str(tmp_path), list)


def test_the_locked_requirements_bring_a_redis() -> None:
    assert find_server(lambda _name: None)


def test_the_socket_lies_with_the_state(tmp_path: Path) -> None:
    with private_redis("redis-server", tmp_path) as redis:
        assert redis.socket == tmp_path / "redis" / "redis.sock"


@pytest.mark.parametrize("name", ["x" * 100, "50%", "a#b", "what?"])
def test_a_folder_that_no_socket_can_lie_in_gets_a_short_one(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with private_redis("redis-server", tmp_path / name) as redis:
        assert len(os.fsencode(redis.socket)) <= 100
        assert redis.folder == tmp_path / name / "redis"


def test_the_short_folder_is_ours_alone_and_goes_again(tmp_path: Path) -> None:
    (tmp_path / ("x" * 100)).mkdir()
    with private_redis("redis-server", tmp_path / ("x" * 100)) as redis:
        assert redis.socket.parent.stat().st_mode & 0o777 == 0o700
    assert not redis.socket.parent.exists()


def test_a_short_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    var = tmp_path / ("x" * 100)
    var.mkdir()
    with private_redis("redis-server", var) as redis:
        short = redis.socket.parent
    short.mkdir(mode=0o777)
    short.chmod(0o777)
    try:
        with pytest.raises(Refused, match="belongs to someone else"):
            private_redis("redis-server", var).__enter__()
    finally:
        short.rmdir()


@pytest.mark.parametrize("version", ["3.8", "3.10"])
def test_an_old_python_can_still_read_what_refuses_it(version: str) -> None:
    major, minor = map(int, version.split("."))
    source = (Path(__file__).resolve().parents[2] / "manage.py").read_text()
    compiled = subprocess.run(
        [sys.executable, "-c", f"import ast, sys; ast.parse(sys.stdin.read(), feature_version=({major}, {minor}))"],
        input=source, text=True, check=False,
    )  # fmt: skip
    assert compiled.returncode == 0
