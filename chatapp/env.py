"""
Typed readers of environment variables.

A variable that is set but empty counts as not set. What cannot be understood is refused with a
sentence that names the variable, never replaced by a default.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TypeAlias

from django.core.exceptions import ImproperlyConfigured

Network: TypeAlias = IPv4Network | IPv6Network

_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def read_str(name: str, default: str = "", *, environ: Mapping[str, str] = os.environ) -> str:
    """Read a text; spaces around it are dropped."""
    return environ.get(name, "").strip() or default


def read_bool(name: str, default: bool = False, *, environ: Mapping[str, str] = os.environ) -> bool:
    """
    Read 1, true, yes, on, or 0, false, no, off, in any case.

    Raises:
        ImproperlyConfigured: it is any other word.
    """
    word = read_str(name, environ=environ)
    if not word:
        return default
    if word.lower() not in _WORDS:
        raise ImproperlyConfigured(f"{name} must be true or false, not {word!r}.")
    return _WORDS[word.lower()]


def read_int(
    name: str,
    default: int,
    *,
    minimum: int | None = None,
    maximum: int | None = None,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """
    Read a whole number; both limits are allowed values.

    Raises:
        ImproperlyConfigured: it is no whole number, or outside the limits.
    """
    text = read_str(name, environ=environ)
    try:
        value = int(text) if text else default
    except ValueError as exc:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {text!r}.") from exc
    if minimum is not None and value < minimum:
        raise ImproperlyConfigured(f"{name} must be at least {minimum}, not {value}.")
    if maximum is not None and value > maximum:
        raise ImproperlyConfigured(f"{name} must be at most {maximum}, not {value}.")
    return value


def read_list(name: str, default: Sequence[str] = (), *, environ: Mapping[str, str] = os.environ) -> list[str]:
    """
    Read texts with commas between them.

    Raises:
        ImproperlyConfigured: a place between two commas is empty.
    """
    text = read_str(name, environ=environ)
    if not text:
        return list(default)
    values = [part.strip() for part in text.split(",")]
    if "" in values:
        raise ImproperlyConfigured(f"{name} has an empty place between its commas: {text!r}.")
    return values


def read_networks(name: str, default: Sequence[str], *, environ: Mapping[str, str] = os.environ) -> list[Network]:
    """
    Read addresses and networks (`10.0.0.0/8`) with commas between them.

    Raises:
        ImproperlyConfigured: one of them is neither.
    """
    try:
        return [ip_network(text) for text in read_list(name, default, environ=environ)]
    except ValueError as exc:
        raise ImproperlyConfigured(f"{name} must name addresses or networks: {exc}.") from exc


def read_path(name: str, default: Path, *, environ: Mapping[str, str] = os.environ) -> Path:
    """Read a path and make it absolute, since the processes that read it may stand in different folders."""
    return Path(read_str(name, str(default), environ=environ)).expanduser().absolute()


def read_secret(name: str, default: str = "", *, environ: Mapping[str, str] = os.environ) -> str:
    """
    Read a secret from the variable, or from the file that NAME_FILE names (without its last line end).

    Raises:
        ImproperlyConfigured: both are set, or the file cannot be read or is empty. The message never
            holds the secret.
    """
    value, path = read_str(name, environ=environ), read_str(f"{name}_FILE", environ=environ)
    if value and path:
        raise ImproperlyConfigured(f"Set {name} or {name}_FILE, not both.")
    return _secret_from(Path(path), f"{name}_FILE") if path else value or default


def _secret_from(path: Path, name: str) -> str:
    try:
        value = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8"
        raise ImproperlyConfigured(f"{name} names {path}, which cannot be read: {reason}.") from exc
    if not value:
        raise ImproperlyConfigured(f"{name} names {path}, which is empty.")
    return value
