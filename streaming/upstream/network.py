"""How this process reaches services: which certificates it believes, and by which proxy. The operator decides both.

Nothing in the environment sends a call another way by itself, since what a shell was given for other programs may lead
nowhere. Certificates are another matter: one more authority refuses nothing.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

import httpx

# OpenSSL itself reads SSL_CERT_FILE and SSL_CERT_DIR, in the place of the system's store.
_BUNDLES: Final = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_WITH_PORT: Final = re.compile(r"\[?(?P<host>[0-9.]+|(?<=\[)[0-9a-f:.]+)\]?:\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Network:
    """
    What the operator has chosen.

    `proxies` are http or https addresses by the scheme of what is called; `direct` are hosts, domains with all below
    them, addresses and networks that are called without one. This machine always is.
    """

    ca_file: Path | None = None
    proxies: Mapping[str, str] = field(default_factory=dict)
    direct: tuple[str, ...] = ()

    def proxy_for(self, url: str) -> str | None:
        parts = urlsplit(url)
        proxy = self.proxies.get(parts.scheme) or self.proxies.get("all")
        return None if proxy is None or self._is_direct(parts.hostname or "") else proxy

    def secrets(self) -> tuple[str, ...]:
        """Give what must never be seen of the proxies' addresses: passwords as written, as meant, and as sent."""
        return tuple(secret for proxy in self.proxies.values() for secret in _secrets_in(urlsplit(proxy)))

    def _is_direct(self, host: str) -> bool:
        host = host.lower().rstrip(".")
        if "*" in self.direct or host == "localhost" or host.endswith(".localhost"):
            return True
        address = _address(host)
        if address is None:
            return any(_is_below(host, one) for one in self.direct)
        return address.is_loopback or address.is_unspecified or any(_holds(one, address) for one in self.direct)


_chosen = Network()


def choose(network: Network) -> None:
    """Let all calls of this process go this way. For its start; calls that are under way stay as they are."""
    global _chosen  # noqa: PLW0603
    _chosen = network
    tls_context.cache_clear()


def chosen() -> Network:
    return _chosen


@functools.cache
def tls_context() -> ssl.SSLContext:
    """Read the certificate stores once: it takes as long as hundreds of calls."""
    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    for bundle in filter(None, map(os.environ.get, _BUNDLES)):
        # Another program's variable may name what is no longer there.
        with contextlib.suppress(OSError):
            trust(context, Path(bundle))
    if _chosen.ca_file:
        trust(context, _chosen.ca_file)
    return context


def trust(context: ssl.SSLContext, store: Path) -> None:
    """
    Believe the authorities in a PEM file, or in a folder as `openssl rehash` makes one.

    Raises:
        OSError: it cannot be read, or holds no certificate (ssl.SSLError).
    """
    context.load_verify_locations(**{"capath" if store.is_dir() else "cafile": str(store)})


def client(address: str, **more: Any) -> httpx.AsyncClient:
    """Make a client for short questions to one address. Only that address is ever called: it follows no redirects."""
    proxy = _chosen.proxy_for(address)
    way = httpx.Proxy(proxy, ssl_context=tls_context() if proxy.startswith("https:") else None) if proxy else None
    return httpx.AsyncClient(verify=tls_context(), trust_env=False, follow_redirects=False, proxy=way, **more)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Read a host as an address, one of IPv4 in the spelling of IPv6 as what it stands for; None if it is a name."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _holds(written: str, address: IPv4Address | IPv6Address) -> bool:
    """Compare with `10.0.0.0/8`, `10.1.2.3`, `[fd00::1]`, or one of the last two with a port."""
    found = _WITH_PORT.fullmatch(written)
    with contextlib.suppress(ValueError):
        return address in ip_network(found["host"] if found else written.strip("[]"), strict=False)
    return False


def _is_below(host: str, written: str) -> bool:
    """Compare with `example.org`, `.example.org` or `*.example.org`, with a port or without, as other programs do."""
    domain = written.lower().partition(":")[0].lstrip("*").strip(".")
    return host == domain or host.endswith(f".{domain}")


def _secrets_in(proxy: SplitResult) -> list[str]:
    """Without a password, the name is what lets in."""
    if not proxy.username:
        return []
    user, password = unquote(proxy.username), unquote(proxy.password or "")
    written = proxy.password or proxy.username
    return [base64.b64encode(f"{user}:{password}".encode()).decode(), written, unquote(written)]
