"""Which Redis is found on this machine, and where its socket lies."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from chatapp.up.redis_formats import Server
from chatapp.up.redis_server import find_servers, private_redis
from chatapp.up.refusal import Refused

SERVER = Server("redis-server", "redis", (7, 0, 15))


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
        find_servers(lambda _name: None, list)


def test_the_redis_of_the_machine_comes_first(server: Callable[[str, str], str]) -> None:
    redis = server("redis", "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64")
    valkey = server("valkey", "Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64")
    found = find_servers({"redis-server": redis, "valkey-server": valkey}.get, list)
    assert list(map(str, found)) == ["Redis 7.0.15", "Valkey 9.1.2"]


def test_a_valkey_does_as_well(server: Callable[[str, str], str]) -> None:
    valkey = server("valkey", "Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64")
    assert find_servers({"valkey-server": valkey}.get, list) == [Server(valkey, "valkey", (9, 1, 2))]


def test_a_redis_that_is_too_old_is_passed_over(server: Callable[[str, str], str]) -> None:
    old, bundled = server("old", "Redis server v=5.0.7"), server("bundled", "Redis server v=6.2.5")
    assert find_servers({"redis-server": old}.get, lambda: [bundled]) == [Server(bundled, "redis", (6, 2, 5))]


def test_a_binary_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    with pytest.raises(Refused):
        find_servers(lambda _name: str(tmp_path), list)


def test_the_locked_requirements_bring_a_redis() -> None:
    assert find_servers(lambda _name: None)


def test_the_socket_lies_with_the_state(tmp_path: Path) -> None:
    with private_redis(SERVER, tmp_path) as redis:
        assert redis.socket == tmp_path / "redis.sock"


@pytest.mark.parametrize("name", ["x" * 100, "50%", "a#b", "what?"])
def test_a_folder_that_no_socket_can_lie_in_gets_a_short_one(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with private_redis(SERVER, tmp_path / name) as redis:
        assert len(os.fsencode(redis.socket)) <= 100
        assert redis.folder == tmp_path / name


def test_the_short_folder_is_ours_alone_and_goes_again(tmp_path: Path) -> None:
    (tmp_path / ("x" * 100)).mkdir()
    with private_redis(SERVER, tmp_path / ("x" * 100)) as redis:
        assert redis.socket.parent.stat().st_mode & 0o777 == 0o700
    assert not redis.socket.parent.exists()


def test_a_short_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    var = tmp_path / ("x" * 100)
    var.mkdir()
    with private_redis(SERVER, var) as redis:
        short = redis.socket.parent
    short.mkdir(mode=0o777)
    short.chmod(0o777)
    try:
        with pytest.raises(Refused, match="belongs to someone else"):
            private_redis(SERVER, var).__enter__()
    finally:
        short.rmdir()
