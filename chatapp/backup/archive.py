"""The file of a backup: a zip that holds the manifest and what it lists."""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from chatapp.backup.manifest import MAX_BYTES, NAME, BackupError, Manifest, Member, parse
from chatapp.backup.progress import Progress

_CHUNK_BYTES = 1024 * 1024
# Text and HTML shrink to a third at the fastest level, and little further at slower ones.
_LEVEL = 1
_ENCRYPTED = 0x1
# Ours are deflated; each further way to pack is a library more that reads what strangers wrote.
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# All that zipfile raises of a file that is damaged or hostile.
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError)


def write(
    file: Path, parts: Mapping[str, Path], make: Callable[[tuple[Member, ...]], Manifest], tell: Progress
) -> None:
    """Write a backup of `parts` (member's name → file) for its owner only, and see it on the disk."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "r+b") as out:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
            members = tuple(_pack(archive, name, part, tell) for name, part in parts.items())
            archive.writestr(_info(NAME), make(members).to_json())
        out.flush()
        os.fsync(out.fileno())


class Backup:
    """A backup that was opened: its manifest was read, and names exactly what is in it."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.manifest = _manifest(archive.infolist(), archive)

    def extract(self, member: Member, file: Path, tell: Progress) -> None:
        """
        Write a member to a new file, for its owner only.

        Never more than the manifest says is written, however much the member would unpack to.

        Raises:
            BackupError: it is not what the manifest says.
        """
        file.unlink(missing_ok=True)
        digest, size = hashlib.sha256(), 0
        with _new(file) as out:
            for data in _unpacked(self._archive, member.name, member.size):
                digest.update(data)
                size += len(data)
                out.write(data)
                tell.add(len(data))
            out.flush()
            os.fsync(out.fileno())
        if size != member.size or digest.hexdigest() != member.sha256:
            raise BackupError(f"It is damaged: {member.name} is not what the manifest says.")


@contextmanager
def opened(file: Path) -> Iterator[Backup]:
    """
    Open a backup.

    Raises:
        BackupError: it is none, is damaged, or of a newer format.
    """
    with ExitStack() as stack:
        try:
            backup = Backup(stack.enter_context(zipfile.ZipFile(file)))
        except OSError as exc:
            raise BackupError(f"It cannot be read: {(exc.strerror or str(exc)).lower()}.") from exc
        except _DAMAGE as exc:
            raise BackupError(f"It is no backup of Sidestream, or a damaged one ({exc}).") from exc
        yield backup


def _manifest(infos: Sequence[zipfile.ZipInfo], archive: zipfile.ZipFile) -> Manifest:
    names = [info.filename for info in infos]
    if NAME not in names:
        raise BackupError("It is no backup of Sidestream: it holds no manifest.")
    if not all(map(_is_plain, infos)):
        raise BackupError("It is damaged: something in it is no ordinary file.")
    text = b"".join(_unpacked(archive, NAME, MAX_BYTES))
    if len(text) > MAX_BYTES:
        raise BackupError("It is damaged: its manifest is too large.")
    manifest = parse(text)
    if sorted(names) != sorted([NAME, *(member.name for member in manifest.members)]):
        raise BackupError("It is damaged: it holds something else than its manifest says.")
    return manifest


def _is_plain(info: zipfile.ZipInfo) -> bool:
    kind = stat.S_IFMT(info.external_attr >> 16)
    is_file = not info.filename.endswith("/") and kind in (0, stat.S_IFREG)
    return is_file and info.compress_type in _PACKED and not info.flag_bits & _ENCRYPTED


def _unpacked(archive: zipfile.ZipFile, name: str, size: int) -> Iterator[bytes]:
    """
    Give a member in pieces, one byte more than `size` at most.

    Raises:
        BackupError: it cannot be read. What goes wrong with the pieces is no matter of this.
    """
    left = size + 1
    try:
        with archive.open(name) as source:
            while left and (data := source.read(min(_CHUNK_BYTES, left))):
                left -= len(data)
                yield data
    except (*_DAMAGE, OSError) as exc:
        raise BackupError(f"It is damaged: {name} cannot be unpacked ({exc}).") from exc


def _pack(archive: zipfile.ZipFile, name: str, part: Path, tell: Progress) -> Member:
    digest, size = hashlib.sha256(), 0
    with part.open("rb") as source, archive.open(_info(name), "w", force_zip64=True) as out:
        while data := source.read(_CHUNK_BYTES):
            digest.update(data)
            size += len(data)
            out.write(data)
            tell.add(len(data))
    return Member(name, size, digest.hexdigest())


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (stat.S_IFREG | 0o600) << 16
    return info


def _new(file: Path) -> IO[bytes]:
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
