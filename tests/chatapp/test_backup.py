"""`manage.py backup` and `restore`: while others write, against what is damaged or hostile, killed anywhere."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from chatapp.backup.archive import Backup, opened
from chatapp.backup.make import make
from chatapp.backup.manifest import FORMAT, MAX_BYTES, BackupError, parse
from chatapp.backup.place import Place
from chatapp.backup.progress import Progress
from chatapp.backup.restore import restore
from chatapp.backup.switch import JOURNAL, Move, finish, switch
from tests.chatapp.test_up_command import ROOT, environment, running

# Answers that are committed one after the other, as a worker does; the number of each is printed once it is.
_WRITES = """
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
_RUNS = """
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
    return manage(env, "shell", "--no-imports", "-c", _WRITES.replace("LIMIT", str(answers))).split()


def answers_in(var: Path) -> set[str]:
    with closing(sqlite3.connect(var / "sidestream.sqlite3")) as database:
        rows = database.execute("SELECT id FROM chatapp_generation WHERE state = 'completed'")
        return {f"{one[:8]}-{one[8:12]}-{one[12:16]}-{one[16:20]}-{one[20:]}" for (one,) in rows}


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], Path]:
    """A state folder, the answers in it, and a backup of it."""
    folder = tmp_path_factory.mktemp("made")
    env = environment(folder / "var", SIDESTREAM_LLAMACPP_URL="http://127.0.0.1:9")
    manage(env, "migrate", "--verbosity", "0")
    answers = write(env, 3)
    manage(env, "backup", str(folder / "backup.zip"))
    return folder / "var", answers, folder / "backup.zip"


@pytest.fixture
def var(made: tuple[Path, list[str], Path], tmp_path: Path) -> Path:
    """A state folder of the test's own, with the answers of `made`."""
    return Path(shutil.copytree(made[0], tmp_path / "var"))


@pytest.fixture
def env(var: Path) -> dict[str, str]:
    return environment(var, SIDESTREAM_LLAMACPP_URL="http://127.0.0.1:9")


@pytest.fixture
def backup(made: tuple[Path, list[str], Path]) -> Path:
    return made[2]


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


def place_of(var: Path, models: Path | None = None) -> Place:
    return Place(ROOT, var, var / "sidestream.sqlite3", var / "secret_key", models)


def back_up(var: Path, file: Path, *, overwrite: bool = False) -> None:
    make(place_of(var), file, print, overwrite=overwrite)


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
    program = [sys.executable, "manage.py", "shell", "--no-imports", "-c", _WRITES.replace("LIMIT", "100000")]
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
    manage(env, "shell", "--no-imports", "-c", _RUNS)
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


# What is damaged, hostile or of another version.


def altered(
    backup: Path, to: Path, manifest: Callable[[dict[str, object]], object] = lambda _: None, **members: bytes
) -> Path:
    """Write a backup again with another manifest, or with other or further members ("_" stands for "/" and ".")."""
    with zipfile.ZipFile(backup) as old, zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as new:
        told = json.loads(old.read("manifest.json"))
        manifest(told)
        for name in old.namelist():
            if name != "manifest.json":
                new.writestr(name, members.pop(name, None) or old.read(name))
        for name, content in members.items():
            new.writestr(name, content)
        new.writestr("manifest.json", json.dumps(told))
    return to


def _rename(name: str) -> Callable[[dict[str, object]], object]:
    return lambda told: told["members"][1].update(name=name)  # type: ignore[index]


ALTERED: dict[str, tuple[Callable[[dict[str, object]], object], dict[str, bytes], str]] = {
    "another key": (lambda _: None, {"secret_key": b"x"}, "secret_key is not what the manifest says"),
    "a key that goes on": (lambda _: None, {"secret_key": b"x" * 10**7}, "secret_key is not what the manifest says"),
    "a member too many": (lambda _: None, {"more": b""}, "it holds something else than its manifest says"),
    "a path outside": (_rename("../../secret_key"), {}, "its manifest makes no sense"),
    "an absolute path": (_rename("/etc/passwd"), {}, "its manifest makes no sense"),
    "a member that is not there": (_rename("models.toml"), {}, "it holds something else than its manifest says"),
    "a member twice": (_rename("sidestream.sqlite3"), {}, "names no database, or a member twice"),
    "a size below nothing": (lambda told: told["members"][0].update(size=-1), {}, "its manifest makes no sense"),  # type: ignore[index]
    "a size that no disk has": (lambda told: told["members"][0].update(size=10**18), {}, "MB are free"),  # type: ignore[index]
    "a newer format": (lambda told: told.update(format=FORMAT + 1), {}, "this version reads format 1"),
    "a newer schema": (
        lambda told: told["migrations"].append("chatapp.9999_later"), {}, "this one does not know chatapp.9999_later"  # type: ignore[attr-defined]
    ),
    "no members": (lambda told: told.update(members=[]), {}, "names no database"),
    "members of another kind": (lambda told: told.update(members=[1]), {}, "its manifest makes no sense"),
}  # fmt: skip


@pytest.mark.parametrize("what", ALTERED)
def test_what_is_not_as_it_was_made_is_refused_and_nothing_is_touched(
    var: Path, backup: Path, tmp_path: Path, what: str
) -> None:
    change, members, sentence = ALTERED[what]
    file, before = altered(backup, tmp_path / "b.zip", change, **members), everything_in(var)
    with pytest.raises(BackupError, match=re.escape(sentence)):
        restore(place_of(var), file, print)
    assert everything_in(var) == before


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("name", ["manifest.json", "secret_key"])
def test_what_is_packed_as_no_backup_is_read_by_no_library(
    var: Path, backup: Path, tmp_path: Path, packing: int, name: str
) -> None:
    file = tmp_path / "b.zip"
    with zipfile.ZipFile(backup) as old, zipfile.ZipFile(file, "w") as new:
        for each in old.namelist():
            new.writestr(each, old.read(each), compress_type=packing if each == name else zipfile.ZIP_DEFLATED)
    with pytest.raises(BackupError, match="something in it is no ordinary file"):
        restore(place_of(var), file, print)


def test_no_change_of_bytes_is_more_than_a_refusal(var: Path, backup: Path, tmp_path: Path) -> None:
    """Where the archive says what is in it, each byte means something to the library that reads it."""
    whole, file, chance = backup.read_bytes(), tmp_path / "b.zip", random.Random(1)
    places = [*range(80), *range(len(whole) - 400, len(whole))]
    for _ in range(1000):
        content = bytearray(whole)
        for _ in range(chance.choice([1, 1, 2, 5])):
            content[chance.choice(places)] = chance.choice([0, 0xFF, chance.randrange(256)])
        file.write_bytes(content)
        with contextlib.suppress(BackupError), opened(file) as found:
            found.extract(found.manifest.members[1], tmp_path / "out", Progress(print, "", 1))


def test_what_a_manifest_says_commands_no_terminal(backup: Path, tmp_path: Path) -> None:
    words = "\x1b]0;x\x07\n\u202e"
    file = altered(
        backup, tmp_path / "b.zip", lambda told: told.update(version=words, created=words, migrations=[words])
    )
    with opened(file) as found:
        told = found.manifest
        assert {told.version, told.created, *told.migrations} == {r"\x1b]0;x\x07\n\u202e"}


def test_a_disk_that_is_full_is_told_by_its_place_and_nothing_is_touched(
    var: Path, env: dict[str, str], backup: Path
) -> None:
    before = everything_in(var)
    command = ["sh", "-c", 'ulimit -f 40; exec "$@"', "sh", sys.executable, "manage.py", "restore", str(backup)]
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, everything_in(var)) == (1, before)
    assert f"nothing was changed. It cannot be restored: {var}: file too large." in ended.stderr


def database_of(backup: Path, to: Path, *statements: str) -> bytes:
    to.write_bytes(zipfile.ZipFile(backup).read("sidestream.sqlite3"))
    with closing(sqlite3.connect(to)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        for statement in statements:
            database.execute(statement)
        database.commit()
    return to.read_bytes()


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        (
            "INSERT INTO django_migrations (app, name, applied) VALUES ('chatapp', '9998_later', 0)",
            "this one does not know chatapp.9998_later",
        ),
        ("DELETE FROM django_migrations", "not one of Sidestream's"),
        ("CREATE TRIGGER t AFTER INSERT ON chatapp_turn BEGIN DELETE FROM chatapp_turn; END", "triggers or views"),
        ("CREATE VIEW v AS SELECT 1", "triggers or views"),
    ],
)
def test_a_database_that_this_version_did_not_write_is_refused(
    var: Path, backup: Path, tmp_path: Path, statement: str, sentence: str
) -> None:
    content, before = database_of(backup, tmp_path / "d", statement), everything_in(var)
    file = packed_again(backup, tmp_path / "b.zip", content)
    with pytest.raises(BackupError, match=sentence):
        restore(place_of(var), file, print)
    assert everything_in(var) == before


def packed_again(backup: Path, to: Path, database: bytes) -> Path:
    """Write a backup with another database and a manifest that fits it."""

    def fit(told: dict[str, object]) -> None:
        told["members"][0].update(size=len(database), sha256=hashlib.sha256(database).hexdigest())  # type: ignore[index]

    return altered(backup, to, fit, **{"sidestream.sqlite3": database})


def test_a_link_in_a_backup_is_refused(backup: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(backup) as old, zipfile.ZipFile(tmp_path / "b.zip", "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == "secret_key":
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
            new.writestr(info, content)
    with pytest.raises(BackupError, match="something in it is no ordinary file"), opened(tmp_path / "b.zip"):
        pass


@pytest.mark.parametrize("cut", [0, 1, 100, -1, -22, -100])
def test_half_a_backup_is_refused(backup: Path, tmp_path: Path, cut: int) -> None:
    (tmp_path / "b.zip").write_bytes(backup.read_bytes()[:cut])
    with pytest.raises(BackupError), opened(tmp_path / "b.zip") as half:
        unpack(half, tmp_path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_flipped_bit_is_noticed(backup: Path, tmp_path: Path, share: float) -> None:
    content = bytearray(backup.read_bytes())
    with zipfile.ZipFile(backup) as archive:
        info = archive.getinfo("sidestream.sqlite3")
    # The name and its length come before what was packed.
    content[30 + len(info.filename) + 20 + int(share * (info.compress_size - 1))] ^= 1
    (tmp_path / "b.zip").write_bytes(content)
    with pytest.raises(BackupError), opened(tmp_path / "b.zip") as flipped:
        unpack(flipped, tmp_path)


def unpack(backup: Backup, folder: Path) -> None:
    for member in backup.manifest.members:
        backup.extract(member, folder / member.name, Progress(print, "unpacking", 1))


def test_a_file_that_is_not_there_or_is_none_of_ours_is_told(env: dict[str, str], var: Path, tmp_path: Path) -> None:
    told = manage(env, "restore", str(tmp_path / "none"), code=1)
    assert f"{tmp_path / 'none'} is not restored, and nothing was changed. It cannot be read: no such file" in told
    (tmp_path / "text").write_text("no zip")
    with pytest.raises(BackupError, match="It is no backup of Sidestream"):
        restore(place_of(var), tmp_path / "text", print)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("a", "b")
    with pytest.raises(BackupError, match="it holds no manifest"):
        restore(place_of(var), tmp_path / "other.zip", print)


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"format": "x"}', b"[" * 5000, b'{"format": 1, "members": 3}'])
def test_a_manifest_that_makes_no_sense_is_refused(text: bytes) -> None:
    with pytest.raises(BackupError):
        parse(text)


def test_a_manifest_without_end_is_not_read_to_it(backup: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as new:
        new.writestr("manifest.json", b" " * (MAX_BYTES + 1))
    with pytest.raises(BackupError, match="its manifest is too large"), opened(tmp_path / "b.zip"):
        pass


def test_a_long_copy_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 2.5, 2.5, 3.0, 5.0, 5.0])
    monkeypatch.setattr("chatapp.backup.progress.time.monotonic", lambda: next(clock))
    said: list[str] = []
    tell = Progress(said.append, "packing", 200)
    for _ in range(4):
        tell.add(50)
    assert said == ["packing: 50 %", "packing: 100 %"]


# Killed anywhere, the state is the old one or the new one.

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
