"""Which Origin header may open a WebSocket."""

from __future__ import annotations

import pytest

from chatapp.origins import origin_is_allowed, parse_origin

HOSTS = ["chat.example", "localhost", "[::1]"]


def allowed(origin: str | None, host: str = "chat.example:8000", scheme: str = "http", *others: str) -> bool:
    headers = [(b"host", host.encode("latin-1"))]
    if origin is not None:
        headers.append((b"origin", origin.encode("latin-1")))
    return origin_is_allowed(headers, scheme, HOSTS, {parse_origin(other) for other in others} - {None})


@pytest.mark.parametrize(
    ("origin", "host", "scheme"),
    [
        ("http://chat.example:8000", "chat.example:8000", "http"),
        ("HTTP://Chat.Example:8000", "chat.example:8000", "http"),
        ("http://chat.example", "chat.example", "http"),
        ("http://chat.example", "chat.example:80", "http"),
        ("https://chat.example", "chat.example", "https"),
        ("https://chat.example:443", "chat.example", "https"),
        ("http://[::1]:8000", "[::1]:8000", "http"),
    ],
)
def test_the_own_page_may(origin: str, host: str, scheme: str) -> None:
    assert allowed(origin, host, scheme)


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "",
        "null",
        "http://evil.example",
        "http://chat.example",
        "http://chat.example:8001",
        "https://chat.example:8000",
        "http://chat.example:8000.evil.example",
        "http://chat.example:8000@evil.example",
        "http://evil.example@chat.example:8000",
        "http://sub.chat.example:8000",
        "http://chat.example:8000/",
        "http://chat.example:8000/path",
        "http://chat.example:80000",
        "ws://chat.example:8000",
        "file://chat.example:8000",
        "chat.example:8000",
        "//chat.example:8000",
    ],
)
def test_any_other_page_may_not(origin: str | None) -> None:
    assert not allowed(origin)


def test_a_name_that_is_not_ours_is_no_own_origin() -> None:
    assert not allowed("http://rebound.example:8000", "rebound.example:8000")


def test_a_configured_origin_may() -> None:
    assert allowed("https://front.example", "chat.example:8000", "http", "https://front.example")


def test_a_configured_origin_allows_no_other_port() -> None:
    assert not allowed("https://front.example:8443", "chat.example:8000", "http", "https://front.example")


@pytest.mark.parametrize("name", [b"origin", b"host"])
def test_a_header_that_comes_twice_is_refused(name: bytes) -> None:
    headers = [(b"host", b"localhost"), (b"origin", b"http://localhost")]
    again = next(header for header in headers if header[0] == name)
    assert not origin_is_allowed([*headers, again], "http", HOSTS, set())
