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
from typing import Final, TypeAlias

from django.core.exceptions import ImproperlyConfigured

from chatapp.unseen import UNSEEN, named

Network: TypeAlias = IPv4Network | IPv6Network

# Each variable that holds a path.
PATHS: Final = (
    "SIDESTREAM_VAR",
    "MODELS_FILE",
    "SIDESTREAM_STATIC_ROOT",
    "SIDESTREAM_CA_FILE",
    "SIDESTREAM_SECRET_KEY_FILE",
    "SIDESTREAM_METRICS_TOKEN_FILE",
)
_WORDS: Final = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


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


def read_choice(name: str, default: str, choices: Sequence[str], *, environ: Mapping[str, str] = os.environ) -> str:
    """
    Read one of some words, in any case; give it as it stands in `choices`.

    Raises:
        ImproperlyConfigured: it is none of them.
    """
    word = read_str(name, default, environ=environ)
    if word.upper() not in choices:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}, not {word!r}.")
    return word.upper()


def read_path(name: str, default: Path, *, environ: Mapping[str, str] = os.environ) -> Path:
    """Read a path as `optional_path` does."""
    return optional_path(name, environ=environ) or default


def optional_path(name: str, *, environ: Mapping[str, str] = os.environ) -> Path | None:
    """
    Read a path, letter by letter, and make it absolute: the processes that read it may stand in different folders.

    Raises:
        ImproperlyConfigured: it ends with a line end; or the home folder or the working folder that it is relative
            to is not known.
    """
    text = environ.get(name, "")
    if not text.strip():
        return None
    if text[-1] in "\r\n":
        raise ImproperlyConfigured(f"{name} ends with a line end (U+{ord(text[-1]):04X}). Remove it.")
    try:
        return Path(text).expanduser().absolute()
    except (RuntimeError, OSError) as exc:
        raise ImproperlyConfigured(
            f"{name} must be an absolute path here, since no folder is known before it."
        ) from exc


def with_absolute_paths(environ: Mapping[str, str]) -> dict[str, str]:
    """Write paths as they are read here, for processes that stand in another folder."""
    paths = {name: optional_path(name, environ=environ) for name in PATHS}
    return {**environ, **{name: str(path) for name, path in paths.items() if path}}


def read_secret(name: str, default: str = "", *, environ: Mapping[str, str] = os.environ) -> str:
    """
    Read a secret from the variable, or from the file that NAME_FILE names (without its last line end).

    Raises:
        ImproperlyConfigured: both are set; the file cannot be read or is empty; or the secret holds a character
            that nobody sees. The message never holds the secret.
    """
    value, path = read_str(name, environ=environ), optional_path(f"{name}_FILE", environ=environ)
    if value and path:
        raise ImproperlyConfigured(f"Set {name} or {name}_FILE, not both.")
    if path is None:
        return check_seen(value, name) or default
    try:
        return secret_in(path, f"{name}_FILE names")
    except OSError as exc:
        raise ImproperlyConfigured(f"{name}_FILE names {path}, which cannot be read: {exc.strerror}.") from exc


def secret_in(path: Path, who: str) -> str:
    """
    Read the secret in a file; a byte order mark and white space around it are no part of it.

    Raises:
        OSError: the file cannot be read.
        ImproperlyConfigured: see read_secret. The message begins with `who` and the path.
    """
    try:
        value = path.read_text(encoding="utf-8-sig").strip()
    except UnicodeDecodeError as exc:
        raise ImproperlyConfigured(f"{who} {path}, which cannot be read: it is not UTF-8.") from exc
    if not value:
        raise ImproperlyConfigured(f"{who} {path}, which is empty.")
    return check_seen(value, f"{who} {path}, whose text")


def check_seen(value: str, what: str) -> str:
    """
    Give the value back if every character of it can be seen.

    Raises:
        ImproperlyConfigured: one cannot; the message says which one and where, and nothing else of the value.
    """
    found = UNSEEN.search(value)
    if found:
        raise ImproperlyConfigured(
            f"{what} holds a character that cannot be seen, at place {found.start() + 1}: {named(found[0])}. Remove it."
        )
    return value
