"""Hosts, origins, addresses and certificates that operators name, checked where they are read."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from streaming.upstream.network import trust

# A name, one with all below it (`.example.org`), an IPv4 address, or an IPv6 address in brackets.
_HOST: Final = re.compile(r"\*|\.?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?|\[[0-9a-f:.]+\]", re.IGNORECASE)
_ORIGIN: Final = re.compile(r"(?P<scheme>https?)://(?P<host>[^:/]+|\*?\[[^]]+\])(?P<port>:\d{1,5})?")
_OWN_PORT: Final = {"http": ":80", "https": ":443"}
# The one word that SIDESTREAM_PROXY knows beside an address.
ENVIRONMENT: Final = "environment"
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


def check_proxy(name: str, given: str, environ: Mapping[str, str]) -> dict[str, str]:
    """
    Give the proxies, by the scheme of what is called, that the variable `name` asks for: one address for all, or
    with the word `environment` those in HTTP_PROXY, HTTPS_PROXY and ALL_PROXY.

    Raises:
        ImproperlyConfigured: one is no address of an HTTP proxy. The message never shows it: it may hold a password.
    """
    if given.lower() != ENVIRONMENT:
        return {"all": check_http_url(name, given)} if given else {}
    lowered = {key.lower(): value.strip() for key, value in environ.items()}
    named = {scheme: lowered.get(f"{scheme}_proxy", "") for scheme in ("http", "https", "all")}
    return {
        scheme: check_http_url(f"{scheme.upper()}_PROXY (by {name})", proxy if "://" in proxy else f"http://{proxy}")
        for scheme, proxy in named.items()
        if proxy
    }


def unproxied(given: str, environ: Mapping[str, str]) -> list[str]:
    """Give the hosts of the environment's NO_PROXY, if its proxies are asked for at all."""
    if given.lower() != ENVIRONMENT:
        return []
    named = environ.get("no_proxy") or environ.get("NO_PROXY", "")
    return [part.strip() for part in named.split(",") if part.strip()]


def check_ca_file(name: str, path: Path) -> Path:
    """
    Give the path back if there are certificates to be believed.

    Raises:
        ImproperlyConfigured: it cannot be read, or holds none.
    """
    try:
        trust(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), path)
    except ssl.SSLError as exc:
        raise ImproperlyConfigured(f"{name} names {path}, which holds no certificate in PEM form.") from exc
    except OSError as exc:
        raise ImproperlyConfigured(f"{name} names {path}, which cannot be read: {exc.strerror}.") from exc
    return path
