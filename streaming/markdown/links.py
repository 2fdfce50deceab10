"""Which links are allowed, and what a person must see of them before a click."""

from __future__ import annotations

import ipaddress
import re

import idna

SCHEMES = ("http", "https", "mailto")
# Longer addresses carry data out more often than they lead anywhere.
MAX_HREF = 2048


def target(href: str) -> str | None:
    """
    Give the host, or mail address, that a link leads to. None: this link is not allowed.

    Only absolute http, https and mailto in a form that every browser reads the same way. That leaves
    out user names (`https://bank.example@evil.example`), IPv6, escapes in hosts, backslashes, and
    numbers that browsers turn into addresses (`http://2130706433`). Hosts beyond ASCII come here as
    punycode, and are shown so.
    """
    if len(href) > MAX_HREF:
        return None
    if found := _MAIL.fullmatch(href):
        return found["address"]
    found = _WEB.fullmatch(href)
    if found is None or int(found["port"] or 0) > _MAX_PORT:
        return None
    host = found["host"].lower()
    return host if _is_plain_host(host) else None


def is_allowed(href: str) -> bool:
    return target(href) is not None


def shows(text: str, href: str, shown: str) -> bool:
    """Say whether a link's own text already tells where it leads: the address itself, or its host."""
    text = text.strip()
    return text in (href, shown) or (target(text) or target(f"https://{text}")) == shown


def _is_plain_host(host: str) -> bool:
    labels = host.removesuffix(".").split(".")
    if not all(map(_is_plain_label, labels)):
        return False
    if not _NUMBER.fullmatch(labels[-1]):
        return True
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return True


def _is_plain_label(label: str) -> bool:
    """Punycode must be what browsers accept, or a link shows one thing and does another."""
    if not label.startswith("xn--"):
        return bool(label)
    try:
        idna.ulabel(label)
    except idna.IDNAError:
        return False
    return True


_MAX_PORT = 65_535
_HOST = r"[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?\.?"
_REST = r"[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]*"
_WEB = re.compile(rf"https?://(?P<host>{_HOST})(?::(?P<port>[0-9]{{1,5}}))?(?:[/?#]{_REST})?", re.IGNORECASE | re.ASCII)
_MAIL = re.compile(
    rf"mailto:(?P<address>[a-z0-9.!#$&'*+/=?^_`~-]{{1,64}}@{_HOST})(?:\?{_REST})?", re.IGNORECASE | re.ASCII
)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
