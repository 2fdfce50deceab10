"""State that outlives its program: another Redis is found, or an older Sidestream meets a newer database."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from chatapp.up.redis_formats import Server
from chatapp.up.redis_server import find_servers
from tests.chatapp.test_up_command import ROOT, environment, refusal, running

# What a prompt of before leaves in the database: one answer is whole, one is being written.
_ASKED = """
import uuid
from chatapp.models import Conversation, Generation, Pane, Turn
conversation = Conversation.objects.create(guest="g")
pane = Pane.objects.create(conversation=conversation, position=0, uuid=uuid.uuid4(), model="echo")
turn = Turn.objects.create(conversation=conversation, index=0, prompt="Hello", key="k")
for number, state in ((1, "completed"), (2, "running")):
    Generation.objects.create(
        conversation=conversation, turn=turn, pane=pane, number=number, model="echo", state=state, attempt=1,
        ended_at=turn.created_at if state == "completed" else None, text="whole" if state == "completed" else "",
    )
"""
# A lease, and two looks of the reaper.
_NOTICED_S = 20


def rows(var: Path) -> list[tuple[str, str, str]]:
    with closing(sqlite3.connect(var / "sidestream.sqlite3")) as database:
        return [
            (state, text, json.loads(error)["code"] if error else "")
            for state, text, error in database.execute(
                "SELECT state, text, error FROM chatapp_generation ORDER BY number"
            )
        ]


def with_only(server: Server, folder: Path) -> str:
    """Give a PATH on which there is this server and no other."""
    folder.mkdir()
    (folder / f"{server.kind}-server").symlink_to(server.binary)
    return str(folder)


def test_an_older_redis_starts_empty_and_says_so_and_what_ran_ends_as_interrupted(tmp_path: Path) -> None:
    by_version = sorted(find_servers(), key=lambda server: (server.kind, server.version))
    older, newer = by_version[0], by_version[-1]
    if older.version >= (7, 0) or newer.version < (7, 0):
        pytest.skip(f"needs a Redis 6.2 and a newer one; there is {', '.join(map(str, by_version))}")
    if newer.binary in {server.binary for server in find_servers(lambda _name: None)}:
        pytest.skip(f"the packages of this Python bring {newer}, which goes on")
    env = environment(tmp_path / "var", SIDESTREAM_LLAMACPP_URL="http://127.0.0.1:9")
    with running({**env, "PATH": with_only(newer, tmp_path / "newer")}) as up:
        up.wait_for("^Sidestream is ready at ")
        subprocess.run([sys.executable, "manage.py", "shell", "-c", _ASKED], cwd=ROOT, env=env, check=True)
    with running({**env, "PATH": with_only(older, tmp_path / "older")}) as up:
        up.wait_for(f"^up .*Redis starts empty: the files that {newer} wrote were set aside, because {older} cannot")
        up.wait_for("^Sidestream is ready at ")
        give_up_at = time.monotonic() + _NOTICED_S
        while rows(tmp_path / "var")[1][0] == "running" and time.monotonic() < give_up_at:
            time.sleep(0.1)
    assert rows(tmp_path / "var") == [("completed", "whole", ""), ("interrupted", "", "driver_lost")]


def test_a_database_of_a_newer_sidestream_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    env = environment(tmp_path / "var")
    subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], cwd=ROOT, env=env, check=True)
    with closing(sqlite3.connect(tmp_path / "var" / "sidestream.sqlite3")) as database:
        database.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('chatapp', '9999_later', 0)")
        database.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('another_app', '9999_x', 0)")
        database.commit()
    before = digests(tmp_path / "var")
    sentence = refusal(env, "--port", "0")
    assert re.match(
        r"A newer Sidestream has written the database .*: this one does not know chatapp\.9999_later\. ", sentence
    )
    assert digests(tmp_path / "var") == before


def test_a_database_that_is_none_is_refused_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "sidestream.sqlite3").write_text("no database, but long enough for SQLite to look at its head" * 20)
    sentence = refusal(environment(tmp_path), "--port", "0")
    assert "sidestream.sqlite3 cannot be read: file is not a database. Move it away, or" in sentence


def digests(var: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in var.rglob("*")
        if path.is_file() and path.suffix != ".lock" and not path.name.endswith("-shm")
    }
