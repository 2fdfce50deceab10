"""What is damaged, hostile or of another version is refused, and nothing is touched."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import re
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from chatapp.backup.archive import Backup, opened
from chatapp.backup.manifest import FORMAT, MAX_BYTES, BackupError, parse
from chatapp.backup.progress import Progress
from chatapp.backup.restore import restore
from tests.chatapp.backup.doing import (
    database_of,
    everything_in,
    manage,
    place_of,
)
from tests.chatapp.test_up_command import ROOT


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
