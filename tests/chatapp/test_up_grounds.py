"""What is in the way is told in a sentence, before anything is started."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chatapp.up.grounds import LOCK_NAME, check_address, free_port, make_folder, only_one, reachable
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


@pytest.mark.parametrize("version", ["3.8", "3.10"])
def test_an_old_python_can_still_read_what_refuses_it(version: str) -> None:
    major, minor = map(int, version.split("."))
    source = (Path(__file__).resolve().parents[2] / "manage.py").read_text()
    compiled = subprocess.run(
        [sys.executable, "-c", f"import ast, sys; ast.parse(sys.stdin.read(), feature_version=({major}, {minor}))"],
        input=source, text=True, check=False,
    )  # fmt: skip
    assert compiled.returncode == 0


@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.1"])
def test_an_address_that_is_one_is_reached_as_it_is(address: str) -> None:
    assert reachable(address) == address


def test_all_addresses_are_reached_by_one_of_them() -> None:
    assert reachable("0.0.0.0") == "127.0.0.1"


def test_all_addresses_of_a_machine_without_ipv6_are_reached_by_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.create_connection

    def without_ipv6(address: tuple[str, int], timeout: float) -> socket.socket:
        if ":" in address[0]:
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
        return connect(address, timeout)

    monkeypatch.setattr(socket, "create_connection", without_ipv6)
    try:
        assert reachable("::") == "127.0.0.1"
    except Refused:
        pytest.skip("this machine cannot even listen on ::")


def test_what_nobody_could_reach_is_refused_instead_of_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a network without a loopback, or where `::` takes IPv6 only and no address of it is there."""

    def unreachable(address: tuple[str, int], timeout: float) -> socket.socket:
        raise OSError(errno.ENETUNREACH, "Network is unreachable")

    monkeypatch.setattr(socket, "create_connection", unreachable)
    with pytest.raises(Refused, match=r"can listen on 0\.0\.0\.0, but .* 127\.0\.0\.1 does not answer"):
        reachable("0.0.0.0")


def test_ipv6_is_preferred_where_it_is_there() -> None:
    try:
        check_address("::1", 0)
    except Refused:
        pytest.skip("this machine has no IPv6")
    assert reachable("::") == "::1"
