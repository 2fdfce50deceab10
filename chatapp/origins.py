"""Which pages may post and open a WebSocket: the browser sends cookies with either from any site."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeAlias
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

Origin: TypeAlias = tuple[str, str, int]  # scheme, host, port
_PORTS = {"http": 80, "https": 443}


def parse_origin(text: str) -> Origin | None:
    """Read `scheme://host[:port]`; None for `null` and for anything that is not exactly an origin."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname or text.count("/") != 2 or "@" in parts.netloc:
        return None
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme]


def origin_is_allowed(
    headers: Iterable[tuple[bytes, bytes]], scheme: str, hosts: Collection[str], others: Collection[Origin]
) -> bool:
    """
    Compare scheme, host and port of the one Origin header with the server's own, and with `others`.

    The server's own is what Host says, if it is among `hosts` (Django's ALLOWED_HOSTS): otherwise a
    name that an attacker points at this server would be its own origin.
    """
    origins = [value.decode("latin-1") for name, value in headers if name == b"origin"]
    named = [value.decode("latin-1") for name, value in headers if name == b"host"]
    if len(origins) != 1 or len(named) != 1:
        return False
    origin = parse_origin(origins[0].lower())
    if origin is None:
        return False
    domain, _ = split_domain_port(named[0])
    is_own = bool(domain) and validate_host(domain, hosts) and origin == parse_origin(f"{scheme}://{named[0].lower()}")
    return is_own or origin in others


def other_origins() -> set[Origin]:
    """Give those that the operator named besides the server's own."""
    configured = (parse_origin(origin.lower()) for origin in settings.SIDESTREAM_ORIGINS)
    return {origin for origin in configured if origin is not None}
