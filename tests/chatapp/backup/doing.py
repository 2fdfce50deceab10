"""What tests of backups do: commands, answers that are written, and what is in a folder."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path

from chatapp.backup.make import make
from chatapp.backup.place import Place
from tests.chatapp.test_up_command import ROOT

# Answers that are committed one after the other, as a worker does; the number of each is printed once it is.
WRITES = """
import asyncio, os, sys
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
from chatapp.store import DjangoStore
from chatapp.wiring import offer
from tests.chatapp.making import a_conversation, a_generation, a_turn, a_whole_answer
async def write():
    store, n = DjangoStore(offer), 0
    while n < LIMIT:
        n += 1
        row = a_generation(a_turn(a_conversation()))
        assert await store.finish(str(row.pk), 1, a_whole_answer(str(row.pk), text=f"answer {n} " + "x" * 2000))
        print(row.pk, flush=True)
asyncio.run(write())
"""
RUNS = """
from tests.chatapp.making import a_conversation, a_generation, a_turn
a_generation(a_turn(a_conversation()), state="running", attempt=1)
"""


def manage(env: dict[str, str], *arguments: str, code: int = 0) -> str:
    """Run a command, see that it ends with the code, and give what it told."""
    command = [sys.executable, "manage.py", *arguments]
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def write(env: dict[str, str], answers: int) -> list[str]:
    return manage(env, "shell", "--no-imports", "-c", WRITES.replace("LIMIT", str(answers))).split()


def answers_in(var: Path) -> set[str]:
    with closing(sqlite3.connect(var / "sidestream.sqlite3")) as database:
        rows = database.execute("SELECT id FROM chatapp_generation WHERE state = 'completed'")
        return {f"{one[:8]}-{one[8:12]}-{one[12:16]}-{one[16:20]}-{one[20:]}" for (one,) in rows}


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def place_of(var: Path, models: Path | None = None) -> Place:
    return Place(ROOT, var, var / "sidestream.sqlite3", var / "secret_key", models)


def back_up(var: Path, file: Path, *, overwrite: bool = False) -> None:
    make(place_of(var), file, print, overwrite=overwrite)


def database_of(backup: Path, to: Path, *statements: str) -> bytes:
    to.write_bytes(zipfile.ZipFile(backup).read("sidestream.sqlite3"))
    with closing(sqlite3.connect(to)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        for statement in statements:
            database.execute(statement)
        database.commit()
    return to.read_bytes()
