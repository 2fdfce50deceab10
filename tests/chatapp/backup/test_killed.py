"""A restore that is killed anywhere leaves the old state or the new one."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from chatapp.backup.switch import JOURNAL, Move, finish, switch
from tests.chatapp.backup.doing import (
    database_of,
    everything_in,
    manage,
)
from tests.chatapp.test_up_command import ROOT, environment

_KILLED = """
import os, shutil, sys
from pathlib import Path
from unittest.mock import patch
import django
django.setup()
from chatapp.backup.place import Place
from chatapp.backup.restore import restore
from chatapp.backup.switch import finish

root, made, backup, scratch = map(Path, sys.argv[1:])
OPERATIONS = ("rename", "replace", "unlink", "fsync", "open")


def killed_at(n, after, folder):
    left = [n]
    def counted(operation):
        def run(*args, **kwargs):
            left[0] -= 1
            if left[0] < 0 and not after:
                os._exit(9)
            result = operation(*args, **kwargs)
            if left[0] < 0:
                os._exit(9)
            return result
        return run
    with patch.multiple(os, **{name: counted(getattr(os, name)) for name in OPERATIONS}):
        place = Place(root, folder, folder / "sidestream.sqlite3", folder / "secret_key", None)
        restore(place, backup, lambda _: None)


def state(folder):
    database = (folder / "sidestream.sqlite3").read_bytes()
    return (folder / "secret_key").read_text() == "old", b"answer 1 " not in database, (folder / "redis").exists()


for after in (False, True):
    for n in range(1000):
        folder = scratch / f"{after}-{n}"
        folder.mkdir()
        shutil.copy(made / "empty.sqlite3", folder / "sidestream.sqlite3")
        (folder / "secret_key").write_text("old")
        (folder / "redis").mkdir()
        pid = os.fork()
        if pid == 0:
            killed_at(n, after, folder)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        finish(folder)
        now = state(folder)
        print("old" if all(now) else "mix" if any(now) else "new")
        shutil.rmtree(folder)
        if code == 0:
            break
        assert code == 9, code
"""


def test_a_restore_that_is_killed_anywhere_leaves_the_old_state_or_the_new(
    made: tuple[Path, list[str], Path], tmp_path: Path
) -> None:
    database_of(
        made[2], made[0].parent / "empty.sqlite3", "DELETE FROM chatapp_eventarchive", "DELETE FROM chatapp_generation"
    )
    with closing(sqlite3.connect(made[0].parent / "empty.sqlite3")) as database:
        database.execute("VACUUM")
    env = {**environment(tmp_path / "var"), "DJANGO_SETTINGS_MODULE": "chatapp.settings", "PYTHONPATH": str(ROOT)}
    arguments = [ROOT, made[0].parent, made[2], tmp_path]
    ended = subprocess.run(
        [sys.executable, "-c", _KILLED, *map(str, arguments)], env=env, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    seen = ended.stdout.split()
    assert set(seen) == {"old", "new"}
    # Each place in the code was reached, before and after what it does, and then one run came to its end.
    assert len(seen) > 30


@pytest.fixture
def two(tmp_path: Path) -> list[Move]:
    """Two files that are to be replaced, and one that only goes."""
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("old")
    for name in ("a", "b"):
        (tmp_path / f"new-{name}").write_text("new")
    return [Move(*(str(tmp_path / one) for one in (name, f"aside-{name}", f"new-{name}"))) for name in ("a", "b")] + [
        Move(str(tmp_path / "c"), str(tmp_path / "aside-c"))
    ]


def test_a_switch_sets_aside_and_puts_in_place(two: list[Move], tmp_path: Path) -> None:
    switch(tmp_path, two)
    assert everything_in(tmp_path) == {
        "a": b"new", "b": b"new", "aside-a": b"old", "aside-b": b"old", "aside-c": b"old"
    }  # fmt: skip


def test_the_next_start_finishes_what_was_decided_before_it_reads_the_key(
    var: Path, env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "new").write_text("the restored key")
    moves = [[str(var / "secret_key"), str(var / "secret_key.set-aside-x"), str(tmp_path / "new")]]
    (var / JOURNAL).write_text(json.dumps(moves))
    code = "from django.conf import settings; print(settings.SECRET_KEY)"
    assert manage(env, "shell", "--no-imports", "-c", code).strip() == "the restored key"
    assert not (var / JOURNAL).exists()


def test_without_a_journal_there_is_nothing_to_finish(tmp_path: Path) -> None:
    finish(tmp_path)
    assert list(tmp_path.iterdir()) == []
