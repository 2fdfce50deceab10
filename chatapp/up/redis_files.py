"""The files that Redis keeps with the state: what they are, who wrote them, and how they are set aside."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from chatapp.disk import aside_of
from chatapp.up.redis_formats import Files, Format, Layout, Server, named
from chatapp.up.refusal import Refused

_RECORD = "written-by.json"
_SINGLE, _PARTS, _MANIFEST = "appendonly.aof", "appendonlydir", "appendonlydir/appendonly.aof.manifest"
_HEAD_BYTES = 64
_MAGIC = re.compile(rb"(?:(REDIS)(\d{4})|(VALKEY)(\d{3}))")
# The first thing that an RDB says after its format is who wrote it.
_SIGNED = re.compile(rb"(redis|valkey)-ver.([\d.]+)", re.DOTALL)
_BASE = re.compile(r"^file (\S+) seq \d+ type b", re.MULTILINE)


def look_at(folder: Path) -> Files | None:
    """Say what a server left in its folder; None if nothing that is worth to be read."""
    layout = _layout(folder)
    if layout is None:
        return None
    try:
        head, fault = _head(folder, layout)
    except OSError as exc:
        head, fault = b"", f"they cannot be opened ({(exc.strerror or str(exc)).lower()})"
    magic = _MAGIC.match(head)
    kind, number = (part for part in magic.groups() if part) if magic else (b"", b"")
    known = Format(kind.decode().lower(), int(number)) if magic else None
    return Files(layout, _writer(folder, head), known, fault)


def holds_something(folder: Path) -> bool:
    """Tell whether there is anything that a server may refuse, whatever it is."""
    return any(not path.is_socket() and path.name != _RECORD for path in folder.iterdir())


def record(folder: Path, server: Server) -> None:
    """Write down who writes in the folder from now on."""
    draft = folder / f"{_RECORD}.{os.getpid()}"
    version = ".".join(map(str, server.version))
    with draft.open("w", encoding="utf-8") as file:
        file.write(json.dumps({"kind": server.kind, "version": version}) + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / _RECORD)


def set_aside(folder: Path, files: Files, fault: str) -> str:
    """
    Give the folder another name, which says when and who wrote it, and make an empty one; say so in a sentence.

    Raises:
        Refused: it cannot be renamed.
    """
    by = f"-written-by-{files.writer.lower().replace(' ', '-')}" if files.writer else ""
    aside = aside_of(folder, by)
    try:
        folder.rename(aside)
        folder.mkdir(mode=0o700)
    except OSError as exc:
        raise Refused(
            f"Redis's files in {folder} cannot be used, because {fault}; and they cannot be set aside: "
            f"{(exc.strerror or str(exc)).lower()}. Move that folder away, then start again."
        ) from exc
    whose = f" that {files.writer} wrote" if files.writer else ""
    return (
        f"Redis starts empty: the files{whose} were set aside, because {fault}. Answers that were being written end as "
        f"interrupted, all others are in the database. Remove {aside} when nobody wants to look into it."
    )


def _layout(folder: Path) -> Layout | None:
    single, parts = _newest(folder / _SINGLE), _newest(folder / _PARTS)
    if single and parts:
        return Layout.SINGLE_AFTER_PARTS if single > parts else Layout.PARTS
    return Layout.PARTS if parts else Layout.SINGLE if single else None


def _newest(path: Path) -> float:
    """Give when something was last written there; 0 if there is nothing, or only what is empty."""
    try:
        found = [each.stat() for each in (path.iterdir() if path.is_dir() else [path])]
    except FileNotFoundError:
        return 0
    except OSError:
        return path.lstat().st_mtime
    return max((each.st_mtime for each in found if each.st_size), default=0)


def _head(folder: Path, layout: Layout) -> tuple[bytes, str]:
    """Give the first bytes, and why no server could use what is there (or "")."""
    if layout is not Layout.PARTS:
        return _first_bytes(folder / _SINGLE), ""
    try:
        manifest = (folder / _MANIFEST).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        # A server would take the folder for new, and say nothing.
        return b"", "their manifest is missing"
    base = _BASE.search(manifest)
    if base is None:
        return b"", ""  # The server is to judge.
    head = _first_bytes(folder / _PARTS / Path(base[1]).name)
    if base[1].endswith(".rdb") and not _MAGIC.match(head):
        return head, f"{base[1]} is damaged"
    return head, ""


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES)


def _writer(folder: Path, head: bytes) -> str:
    """Say who wrote the files: by our record, else by what they say themselves."""
    try:
        written = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        return named(_word(written["kind"]), _word(written["version"]))
    except (OSError, ValueError, LookupError, TypeError):
        signed = _SIGNED.search(head)
        return named(signed[1].decode(), signed[2].decode()) if signed else ""


def _word(value: object) -> str:
    """Accept what may stand in a file's name."""
    if not isinstance(value, str) or not re.fullmatch(r"[a-z0-9.]{1,32}", value):
        raise ValueError
    return value
