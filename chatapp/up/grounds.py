"""What must be so on this machine before anything is started. Each check says what to do if it is not."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from chatapp.catalogue import CatalogueError, parse_catalogue
from chatapp.schema import Unreadable, applied_in, unknown
from chatapp.up.refusal import Refused

LOCK_NAME = "up.lock"
# After a kill -9 of `up` its processes need a moment to go, and until then they hold the lock.
_LEFTOVERS_S = 3.0
_LOOK_AGAIN_S = 0.05
_ALTERNATIVES = 50
_LAST_PORT = 65535
_LOOK_S = 1.0
# What stands for all addresses, and where this machine may reach it.
EVERYWHERE = {"0.0.0.0": ("127.0.0.1",), "::": ("::1", "127.0.0.1")}  # noqa: S104


def check_address(host: str, port: int) -> tuple[str, int]:
    """
    Give the numeric address that can be listened on; port 0 becomes a free one.

    Raises:
        Refused: the port is taken, needs rights or is none, or the host is not an address of this machine.
    """
    if not 0 <= port <= _LAST_PORT:
        raise Refused(f"A port is a number from 0 to {_LAST_PORT}, not {port}.")
    try:
        family, address = _resolve(host)
        return address, _listen_once(family, address, port)
    except OSError as exc:
        raise Refused(_why_not(exc, host, port)) from exc


def reachable(address: str) -> str:
    """
    Give an address under which this machine reaches who listens on `address`, which may stand for all of them.

    On a machine without an IPv6 address `::` can be listened on, and is reached by IPv4 only.

    Raises:
        Refused: it would be reached by nobody, so that its start would be waited for for ever.
    """
    if address not in EVERYWHERE:
        return address
    for candidate in EVERYWHERE[address]:
        with contextlib.suppress(OSError), _listener(address) as listener:
            port = listener.getsockname()[1]
            socket.create_connection((candidate, port), timeout=_LOOK_S).close()
            return candidate
    raise Refused(
        f"This machine can listen on {address}, but reaches nothing there: "
        f"{', '.join(f'{one} does not answer' for one in EVERYWHERE[address])}. "
        "Use --host 127.0.0.1, or --host 0.0.0.0 for all its IPv4 addresses."
    )


def free_port() -> int:
    """Give a port of 127.0.0.1 that nobody listens on just now."""
    return _listen_once(socket.AF_INET, "127.0.0.1", 0)


def check_models(path: Path) -> None:
    """
    Read the catalogue of models once, so that a mistake in it is told here and not in every page's log.

    Raises:
        Refused: it cannot be read, or has mistakes; all of them are named with their lines.
    """
    try:
        parse_catalogue(path)
    except CatalogueError as exc:
        raise Refused(f"The models on offer cannot be used. Mend the file that MODELS_FILE names:\n{exc}") from exc


def check_database(file: Path) -> None:
    """
    See that this version knows the schema of the SQLite database, if there is one already. It is left untouched.

    Raises:
        Refused: a newer version has migrated it, or it cannot be read.
    """
    try:
        newer = unknown(applied_in(file))
    except Unreadable as exc:
        raise Refused(
            f"The database {file} cannot be read: {exc}. Move it away, or put a backup in its place: "
            "python manage.py restore FILE"
        ) from exc
    if newer:
        raise Refused(
            f"A newer Sidestream has written the database {file}: this one does not know {', '.join(newer)}. Nothing "
            "was changed. Start the newer one, restore a backup of this one (python manage.py restore FILE), or set "
            "SIDESTREAM_VAR to another folder."
        )


def make_folder(folder: Path) -> None:
    """
    Make the folder if it is missing, for the owner only, and prove that it can be written.

    Raises:
        Refused: it cannot.
    """
    probe = folder / f".write-test-{os.getpid()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as exc:
        reason = "the disk is read-only" if exc.errno == errno.EROFS else (exc.strerror or str(exc)).lower()
        raise Refused(
            f"Sidestream cannot write to {folder}: {reason}. Set SIDESTREAM_VAR to a folder that it may write to."
        ) from exc


@contextlib.contextmanager
def only_one(folder: Path, leftovers_s: float = _LEFTOVERS_S) -> Iterator[int]:
    """
    Hold the folder's lock, and give its file descriptor for the processes to inherit.

    The system frees the lock when the last process that inherited it has ended. So it also keeps a
    second `up` away from what the first one left behind.

    Raises:
        Refused: another `up` runs on the folder, or processes of one that was killed.
    """
    path = folder / LOCK_NAME
    lock = _open_locked(path, leftovers_s)
    try:
        os.truncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
        yield lock
    finally:
        # Unlinked while it is still held: whoever opened the old file sees that it is no longer the
        # one at this path, and opens again.
        path.unlink(missing_ok=True)
        os.close(lock)


def _open_locked(path: Path, leftovers_s: float) -> int:
    give_up_at = time.monotonic() + leftovers_s
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, lock):
                return lock
        except BlockingIOError as exc:
            holder = _holder(lock)
            if _lives(holder) or time.monotonic() > give_up_at:
                os.close(lock)
                raise Refused(_who_holds(path.parent, holder)) from exc
            time.sleep(_LOOK_AGAIN_S)
        os.close(lock)


def _is_at(path: Path, lock: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(lock))
    except FileNotFoundError:
        return False


def _holder(lock: int) -> int:
    text = os.pread(lock, 32, 0).strip()
    return int(text) if text.isdigit() else 0


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid > 0  # Zero would mean our own group: the holder has not written its number yet.


def _who_holds(folder: Path, pid: int) -> str:
    if _lives(pid):
        return (
            f"Sidestream already runs on {folder} (process {pid}). "
            "Stop it first, or set SIDESTREAM_VAR to another folder to run a second one."
        )
    return f"Processes of a Sidestream that was killed still use {folder}. End them, then start again."


def _resolve(host: str) -> tuple[int, str]:
    family, _, _, _, address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return family, str(address[0])


def _listen_once(family: int, address: str, port: int) -> int:
    with _listener(address, port, family) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def _listener(address: str, port: int = 0, family: int = 0) -> Iterator[socket.socket]:
    with socket.socket(family or _resolve(address)[0], socket.SOCK_STREAM) as listener:
        # As the web server does: connections of an earlier run that still fade away are no obstacle.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(1)
        yield listener


def _why_not(exc: OSError, host: str, port: int) -> str:
    if exc.errno == errno.EADDRINUSE:
        return (
            f"Port {port} is already taken on {host}. Choose another one: "
            f"python manage.py up --port {_free_port_after(host, port)}"
        )
    if exc.errno == errno.EACCES:
        return f"Port {port} needs rights that this user does not have. Choose one above 1023, such as --port 8000."
    if isinstance(exc, socket.gaierror) or exc.errno == errno.EADDRNOTAVAIL:
        return f"{host} is no address of this machine. Use --host 127.0.0.1, or --host 0.0.0.0 for all its addresses."
    return f"Cannot listen on {host}, port {port}: {exc.strerror or exc}."


def _free_port_after(host: str, port: int) -> int:
    family, address = _resolve(host)
    for candidate in range(port + 1, min(port + _ALTERNATIVES, _LAST_PORT) + 1):
        with contextlib.suppress(OSError):
            return _listen_once(family, address, candidate)
    return free_port()
