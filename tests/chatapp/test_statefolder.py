"""Nobody else reads the state, whoever makes it first."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from chatapp.statefolder import keep_to_owner
from tests.chatapp.starting import ROOT, environment

_NOBODY = 65534


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """The usual one while a test prepares its files, and afterwards what it was."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    return [str(path) for path in (folder, *folder.rglob("*")) if path.lstat().st_mode & 0o077]


def made(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def test_what_an_earlier_version_left_readable_is_mended(tmp_path: Path) -> None:
    var = made(tmp_path / "var", "secret_key", "sidestream.sqlite3", "sidestream.sqlite3-wal", "redis/aof/one.aof")
    assert keep_to_owner(var)
    assert open_to_others(var) == []
    assert not keep_to_owner(var)


def test_what_is_made_from_then_on_is_the_owners(tmp_path: Path) -> None:
    keep_to_owner(tmp_path / "var")
    assert open_to_others(made(tmp_path / "var", "sidestream.sqlite3")) == []


def test_a_folder_with_other_things_in_it_stays_open_but_not_our_files(tmp_path: Path) -> None:
    home = made(tmp_path / "home", "letter.txt", "secret_key")
    assert keep_to_owner(home)
    assert open_to_others(home) == [str(home), str(home / "letter.txt")]


def test_the_root_of_a_volume_is_a_folder_of_ours(tmp_path: Path) -> None:
    volume = made(tmp_path / "volume", "lost+found/x", "secret_key")
    assert keep_to_owner(volume)
    assert str(volume) not in open_to_others(volume)


def test_a_folder_for_everybody_stays_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    assert not keep_to_owner(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777


def test_a_link_does_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    elsewhere = made(tmp_path / "elsewhere", "x")
    made(tmp_path / "var", "secret_key")
    (tmp_path / "var" / "redis").symlink_to(elsewhere)
    keep_to_owner(tmp_path / "var")
    assert open_to_others(elsewhere) == [str(elsewhere), str(elsewhere / "x")]


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert not keep_to_owner(tmp_path / "var")
    assert not (tmp_path / "var").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("manage.py", "migrate", "--verbosity", "0"),
        ("manage.py", "check"),
        ("-c", "import chatapp.asgi"),
        ("-c", "import chatapp.celery, django; django.setup(); from django.db import connection as c; c.connect()"),
    ],
)
def test_every_process_keeps_its_files_to_its_owner(tmp_path: Path, command: tuple[str, ...]) -> None:
    env = environment(tmp_path / "var")
    subprocess.run([sys.executable, *command], cwd=ROOT, env=env, umask=0, check=True)
    assert (tmp_path / "var" / "secret_key").exists()
    assert open_to_others(tmp_path / "var") == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_can_read_none_of_it() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        var = made(Path(folder) / "var", "secret_key", "sidestream.sqlite3", "redis/appendonly.aof")
        look = ["find", str(var), "-type", "f"]
        assert len(subprocess.check_output(look, user=_NOBODY).splitlines()) == 3
        keep_to_owner(var)
        ended = subprocess.run(look, user=_NOBODY, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, b"")


def test_the_files_for_a_web_server_are_for_everybody(tmp_path: Path) -> None:
    env = environment(tmp_path / "var", SIDESTREAM_STATIC_ROOT=str(tmp_path / "static"))
    subprocess.run(
        [sys.executable, "manage.py", "collectstatic", "--no-input", "-v", "0"], cwd=ROOT, env=env, check=True
    )
    closed = [path for path in (tmp_path / "static").rglob("*") if not path.stat().st_mode & 0o004]
    assert closed == []
    assert (tmp_path / "static").stat().st_mode & 0o005 == 0o005


def test_it_is_told_in_one_line(tmp_path: Path) -> None:
    var = made(tmp_path / "var", "secret_key")
    (var / "secret_key").write_text("x" * 64)
    ended = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env=environment(var),
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line for line in ended.stderr.splitlines() if "Other users could read" in line] == [
        f"WARNING chatapp.apps: Other users could read what is in {var}. From now on only its owner can."
    ]
