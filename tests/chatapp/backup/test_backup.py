"""`manage.py backup` and `restore`, also while others write."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import subprocess
import sys
import time
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from chatapp.backup.archive import opened
from chatapp.backup.make import make
from chatapp.backup.manifest import BackupError
from chatapp.backup.progress import Progress
from chatapp.backup.restore import restore
from tests.chatapp.backup.doing import (
    RUNS,
    WRITES,
    answers_in,
    back_up,
    manage,
    place_of,
    write,
)
from tests.chatapp.test_up_command import ROOT, environment, running


def test_what_was_backed_up_comes_back_and_the_present_state_is_set_aside(
    var: Path, env: dict[str, str], tmp_path: Path
) -> None:
    key, before = (var / "secret_key").read_text(), answers_in(var)
    manage(env, "backup", str(tmp_path / "b.zip"))
    (later,) = write(env, 1)
    (var / "secret_key").write_text("another")
    (var / "redis").mkdir()
    told = manage(env, "restore", str(tmp_path / "b.zip"))
    assert ((var / "secret_key").read_text(), answers_in(var)) == (key, before)
    asides = sorted(path.name.partition(".set-aside-")[0] for path in var.glob("*.set-aside-*"))
    assert asides == ["redis", "secret_key", "sidestream.sqlite3"]
    (aside,) = var.glob("sidestream.sqlite3.set-aside-*-by-restore")
    assert f"set aside: {aside}" in told
    aside.rename(var / "sidestream.sqlite3")
    assert later in answers_in(var)


def test_a_backup_is_for_its_owner_only_and_so_is_what_is_restored(var: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        back_up(var, tmp_path / "b.zip")
        restore(place_of(var), tmp_path / "b.zip", print)
    finally:
        os.umask(before)
    files = (tmp_path / "b.zip", var / "sidestream.sqlite3", var / "secret_key")
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 3


def test_a_backup_leaves_nothing_beside_it(var: Path, tmp_path: Path) -> None:
    left = tmp_path / "there" / ".b.zip.part-killed"  # What a backup that was killed leaves.
    left.mkdir(parents=True)
    (left / "database").write_text("half")
    back_up(var, tmp_path / "there" / "b.zip")
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["b.zip"]


def test_models_that_lie_with_the_state_come_along(var: Path, tmp_path: Path) -> None:
    place = place_of(var, var / "mine.toml")
    (var / "mine.toml").write_text("# mine\n")
    make(place, tmp_path / "b.zip", print, overwrite=False)
    (var / "mine.toml").unlink()
    restore(place, tmp_path / "b.zip", print)
    assert (var / "mine.toml").read_text() == "# mine\n"


def test_a_key_that_the_operator_keeps_elsewhere_is_not_in_the_backup(env: dict[str, str], tmp_path: Path) -> None:
    env["SIDESTREAM_SECRET_KEY"] = "the operator's own"
    manage(env, "backup", str(tmp_path / "b.zip"))
    assert "secret_key" not in zipfile.ZipFile(tmp_path / "b.zip").namelist()


def test_a_file_that_is_there_is_not_overwritten_unless_it_is_asked_for(var: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.zip"
    file.write_text("mine")
    with pytest.raises(BackupError, match=r"is there already\. Choose another name, or overwrite it with --force"):
        back_up(var, file)
    assert file.read_text() == "mine"
    back_up(var, file, overwrite=True)
    with opened(file) as backup:
        assert [member.name for member in backup.manifest.members] == ["sidestream.sqlite3", "secret_key"]


@pytest.mark.parametrize(
    ("place", "sentence"), [("no/folder/b.zip", "There is no folder "), (".", "is a folder. Name a file in it.")]
)
def test_a_place_that_cannot_be_written_is_told(var: Path, tmp_path: Path, place: str, sentence: str) -> None:
    with pytest.raises(BackupError, match=sentence):
        back_up(var, tmp_path / place)


def test_without_a_database_there_is_nothing_to_back_up(tmp_path: Path) -> None:
    told = manage(environment(tmp_path / "var"), "backup", str(tmp_path / "b.zip"), code=1)
    assert "There is nothing to back up: no database is at" in told


def test_a_damaged_database_is_told_when_it_is_backed_up(var: Path, tmp_path: Path) -> None:
    file = var / "sidestream.sqlite3"
    content = bytearray(file.read_bytes())
    content[20_000:40_000] = bytes(20_000)
    file.write_bytes(content)
    with pytest.raises(BackupError, match="The database is damaged: "):
        back_up(var, tmp_path / "b.zip")
    assert list(tmp_path.glob("*b.zip*")) == []


def test_a_server_has_means_of_its_own(env: dict[str, str], tmp_path: Path) -> None:
    env["DATABASE_URL"] = "postgres://user:s3cret@127.0.0.1:9/name"
    told = manage(env, "backup", str(tmp_path / "b.zip"), code=1)
    assert "back it up with pg_dump and restore it with pg_restore" in told
    assert "s3cret" not in told


def test_a_backup_while_others_write_has_every_answer_of_before(env: dict[str, str], tmp_path: Path) -> None:
    program = [sys.executable, "manage.py", "shell", "--no-imports", "-c", WRITES.replace("LIMIT", "100000")]
    with subprocess.Popen(program, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        try:
            before = {next(writer.stdout).strip() for _ in range(30)}
            manage(env, "backup", str(tmp_path / "b.zip"))
            assert writer.poll() is None
            next(writer.stdout)  # Nobody who writes was turned away.
        finally:
            writer.kill()
    new = environment(tmp_path / "new")
    manage(new, "restore", str(tmp_path / "b.zip"))
    assert before <= answers_in(tmp_path / "new")
    assert ", 0 with faults" in manage(new, "verify")


def test_what_was_being_written_ends_as_interrupted_after_a_restore_which_is_refused_while_it_runs(
    env: dict[str, str], tmp_path: Path
) -> None:
    manage(env, "shell", "--no-imports", "-c", RUNS)
    manage(env, "backup", str(tmp_path / "b.zip"))
    new = environment(tmp_path / "new", SIDESTREAM_LLAMACPP_URL="http://127.0.0.1:9")
    manage(new, "restore", str(tmp_path / "b.zip"))
    with running(new) as up:
        up.wait_for("^Sidestream is ready at ")
        assert f"Sidestream already runs on {tmp_path / 'new'}" in manage(
            new, "restore", str(tmp_path / "b.zip"), code=1
        )
        give_up_at = time.monotonic() + 20  # A lease, and two looks of the reaper.
        while "running" in states(tmp_path / "new") and time.monotonic() < give_up_at:
            time.sleep(0.1)
    assert states(tmp_path / "new") == ["completed", "completed", "completed", "interrupted"]


def states(var: Path) -> list[str]:
    with closing(sqlite3.connect(var / "sidestream.sqlite3")) as database:
        return sorted(state for (state,) in database.execute("SELECT state FROM chatapp_generation"))


def test_a_restore_is_refused_while_anybody_has_the_database_open(var: Path, backup: Path) -> None:
    """Such as a web server that was started by hand."""
    with closing(sqlite3.connect(var / "sidestream.sqlite3")) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("SELECT count(*) FROM chatapp_generation").fetchone()
        before = answers_in(var)
        with pytest.raises(BackupError, match="A process uses"):
            restore(place_of(var), backup, print)
    assert (answers_in(var), list(var.glob("*.set-aside-*"))) == (before, [])


def test_a_damaged_database_is_no_obstacle_to_a_restore(var: Path, made: tuple[Path, list[str], Path]) -> None:
    (var / "sidestream.sqlite3").write_bytes(b"damaged" * 5000)
    restore(place_of(var), made[2], print)
    assert answers_in(var) == set(made[1])


def test_a_long_copy_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 2.5, 2.5, 3.0, 5.0, 5.0])
    monkeypatch.setattr("chatapp.backup.progress.time.monotonic", lambda: next(clock))
    said: list[str] = []
    tell = Progress(said.append, "packing", 200)
    for _ in range(4):
        tell.add(50)
    assert said == ["packing: 50 %", "packing: 100 %"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/io")
def test_the_cost_is_linear(var: Path, tmp_path: Path) -> None:
    """Counted in bytes that are read and written, which does not depend on what else the machine does."""

    def counted() -> int:
        return sum(map(int, re.findall(r"^[rw]char: (\d+)$", Path("/proc/self/io").read_text(), re.MULTILINE)))

    def cost() -> int:
        before = counted()
        back_up(var, tmp_path / "b.zip", overwrite=True)
        return counted() - before

    def grow(megabytes: int) -> int:
        with closing(sqlite3.connect(var / "sidestream.sqlite3")) as database:
            for _ in range(megabytes):
                database.execute("UPDATE chatapp_generation SET reasoning = reasoning || hex(randomblob(170000))")
            database.commit()
        return (var / "sidestream.sqlite3").stat().st_size

    sizes, costs = zip(*((grow(megabytes), cost()) for megabytes in (2, 4, 8)), strict=True)
    small, large = ((costs[n + 1] - costs[n]) / (sizes[n + 1] - sizes[n]) for n in (0, 1))
    assert large < 1.2 * small
    assert large < 8  # bytes for each byte: read, copied, checked, read again, hashed, packed
