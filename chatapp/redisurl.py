"""One setting for Redis, in the two spellings that redis-py and Celery want. Both decode a path's %XX once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

_SOCKETS: Final = ("unix", "redis+socket")


def socket_url(path: Path) -> str:
    """Give the address of a socket of ours; `has_url` says whether it has one."""
    return f"unix://{quote(os.fsencode(path))}"


def has_url(path: Path) -> bool:
    """Tell whether both libraries, which decode as UTF-8, read the same path out of its address."""
    return unquote(quote(os.fsencode(path))) == str(path)


def client_url(url: str) -> str:
    """Give the spelling of redis-py: `unix:///path?db=1`, `redis://…`, `rediss://…`."""
    return f"unix://{_socket_path(url)}{_query(url, 'db')}" if _is_socket(url) else url


def broker_url(url: str) -> str:
    """Give the spelling of Celery: `redis+socket:///path?virtual_host=1`, `redis://…`, `rediss://…`."""
    return f"redis+socket://{_socket_path(url)}{_query(url, 'virtual_host')}" if _is_socket(url) else url


def check_redis_url(name: str, url: str) -> str:
    """
    Give the variable's address back if it can be one.

    Raises:
        ImproperlyConfigured: it cannot. The message never shows it: it may hold a password.
    """
    fault = _fault(url)
    if fault:
        raise ImproperlyConfigured(f"{name} {fault}.")
    return url


def _fault(url: str) -> str | None:
    if "#" in url:
        return "holds a #, which begins nothing in such an address: write it as %23"
    try:
        parts = urlsplit(url)
        return _fault_of_socket(parts) if parts.scheme in _SOCKETS else _fault_of_host(parts)
    except ValueError:
        return "is no address that can be read: brackets belong around an IPv6 address, and a port is a number"


def _fault_of_socket(parts: SplitResult) -> str | None:
    if parts.hostname or not parts.path.startswith("/"):
        return "names no absolute path: a socket's address has three slashes, as in unix:///run/redis.sock"
    return _fault_of_database(next(iter(parse_qs(parts.query).get("db", ())), ""))


def _fault_of_host(parts: SplitResult) -> str | None:
    if parts.scheme not in ("redis", "rediss"):
        return "must begin with redis://, rediss:// or unix:///"
    if parts.port == 0:
        return "names port 0, on which nothing listens"
    return _fault_of_database(parts.path.strip("/"))


def _fault_of_database(number: str) -> str | None:
    return None if number.isascii() and (number or "0").isdigit() else "names a database that is no number"


def _is_socket(url: str) -> bool:
    return urlsplit(url).scheme in _SOCKETS


def _socket_path(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path}"


def _query(url: str, name: str) -> str:
    query = parse_qs(urlsplit(url).query)
    database = query.get("db") or query.get("virtual_host")
    return f"?{name}={database[0]}" if database else ""
