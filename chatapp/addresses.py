"""Hosts, origins and addresses that operators write, checked where they are read. Pure."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

# A name, one with all below it (`.example.org`), an IPv4 address, or an IPv6 address in brackets.
_HOST: Final = re.compile(r"\*|\.?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?|\[[0-9a-f:.]+\]", re.IGNORECASE)
_ORIGIN: Final = re.compile(r"(?P<scheme>https?)://(?P<host>[^:/]+|\*?\[[^]]+\])(?P<port>:\d{1,5})?")
_OWN_PORT: Final = {"http": ":80", "https": ":443"}
_NO_HOST: Final = "a host name such as chat.example.org, .example.org with all below it, or [::1]"


def check_host(name: str, host: str) -> str:
    """
    Give a host of the variable `name` back if Django can compare it with what browsers send.

    Raises:
        ImproperlyConfigured: it has a scheme, a port, a path, or is no host at all: it would match nothing.
    """
    if not _HOST.fullmatch(host):
        raise ImproperlyConfigured(f"{name} must hold {_NO_HOST}, without scheme, port or path; not {host!r}.")
    return host


def check_origin(name: str, origin: str) -> str:
    """
    Give an origin of the variable `name` as browsers write it: in small letters, without the scheme's own port.

    Raises:
        ImproperlyConfigured: it has no scheme, or has more than scheme, host and port: it would match nothing.
    """
    found = _ORIGIN.fullmatch(origin.lower())
    if not found or not _HOST.fullmatch(found["host"].removeprefix("*")):
        raise ImproperlyConfigured(
            f"{name} must hold origins such as https://chat.example.org, with scheme and without path; not {origin!r}."
        )
    port = found["port"] or ""
    return f"{found['scheme']}://{found['host']}{'' if port == _OWN_PORT[found['scheme']] else port}"


def check_http_url(name: str, url: str) -> str:
    """
    Give the address in the variable `name` back if it can be called.

    Raises:
        ImproperlyConfigured: it cannot. The message never shows it: it may hold a password.
    """
    try:
        parts = urlsplit(url)
        callable_ = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        callable_ = False
    if not callable_ or not url.isprintable() or " " in url:
        raise ImproperlyConfigured(f"{name} must be an address such as http://127.0.0.1:8080, with scheme and host.")
    return url
