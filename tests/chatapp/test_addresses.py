"""Hosts, origins and addresses that would match nothing, or lead nowhere, are refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from chatapp.addresses import check_ca_file, check_host, check_http_url, check_origin, check_proxy, unproxied
from tests.streaming.upstream.authority import found


@pytest.mark.parametrize(
    "host", ["localhost", "chat.example.org", ".example.org", "127.0.0.1", "[::1]", "*", "xn--e1a.example", "my_host"]
)
def test_a_host_is_taken_as_it_is(host: str) -> None:
    assert check_host("NAME", host) == host


@pytest.mark.parametrize(
    "host", ["https://chat.example.org", "chat.example.org:8000", "chat.example.org/", "*.example.org", "::1", "a b",
             "chat.example.org\u200b", "chäts.example", "-x", ".", "[::1]:80"],
)  # fmt: skip
def test_a_host_that_would_match_nothing_is_refused(host: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^NAME must hold a host name") as refusal:
        check_host("NAME", host)
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("https://chat.example.org", "https://chat.example.org"),
        ("HTTPS://Chat.Example.org:443", "https://chat.example.org"),
        ("http://localhost:80", "http://localhost"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("https://[::1]:8443", "https://[::1]:8443"),
        ("https://*.example.org", "https://*.example.org"),
    ],
)
def test_an_origin_is_written_as_browsers_write_it(given: str, origin: str) -> None:
    assert check_origin("NAME", given) == origin


@pytest.mark.parametrize(
    "origin", ["chat.example.org", "https://", "https://chat.example.org/", "https://a/b", "https://u@a", "null",
               "ftp://a", "https://a:port", "https://a\u200b.example", "//a"],
)  # fmt: skip
def test_an_origin_that_would_match_nothing_is_refused(origin: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^NAME must hold origins"):
        check_origin("NAME", origin)


@pytest.mark.parametrize(
    "url", ["localhost:8080", "http://", "ftp://:s3cret@h", "http://h:99999", "http://h:0", "http://[::1", "http://a b",
            "http://u:s3cret\u200b@h"],
)  # fmt: skip
def test_an_address_that_cannot_be_called_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^NAME must be an address") as refusal:
        check_http_url("NAME", url)
    assert "s3cret" not in str(refusal.value)


def test_an_address_that_can_be_called_is_taken_as_it_is() -> None:
    assert check_http_url("NAME", "http://u:p@127.0.0.1:8080/v1") == "http://u:p@127.0.0.1:8080/v1"


@pytest.mark.parametrize(
    ("given", "environ", "proxies"),
    [
        ("", {"HTTPS_PROXY": "http://dead:1"}, {}),
        ("http://proxy:3128", {"HTTPS_PROXY": "http://dead:1"}, {"all": "http://proxy:3128"}),
        ("Environment", {}, {}),
        (
            "environment",
            {"HTTPS_PROXY": "proxy:3128", "http_proxy": "http://u:p@other:3128", "ALL_PROXY": " "},
            {"https": "http://proxy:3128", "http": "http://u:p@other:3128"},
        ),
    ],
)
def test_proxies_of_the_environment_count_only_if_they_are_asked_for(
    given: str, environ: dict[str, str], proxies: dict[str, str]
) -> None:
    assert check_proxy("NAME", given, environ) == proxies


@pytest.mark.parametrize(
    ("given", "environ", "name"),
    [
        ("socks5://u:s3cret@proxy:1080", {}, "NAME"),
        ("proxy:3128", {}, "NAME"),
        ("environment", {"ALL_PROXY": "socks5://u:s3cret@proxy:1080"}, r"ALL_PROXY \(by NAME\)"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_refused_without_its_password(
    given: str, environ: dict[str, str], name: str
) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^{name} must be an address") as refusal:
        check_proxy("NAME", given, environ)
    assert "s3cret" not in str(refusal.value)


def test_exceptions_of_the_environment_come_with_its_proxies() -> None:
    environ = {"NO_PROXY": " .example.org, 10.0.0.0/8,,"}
    assert unproxied("environment", environ) == [".example.org", "10.0.0.0/8"]
    assert unproxied("http://proxy:3128", environ) == []


@pytest.mark.parametrize(
    ("content", "why"), [(None, "cannot be read: No such file"), ("no pem", "holds no certificate")]
)
def test_a_file_without_a_certificate_is_refused_by_name_and_place(
    tmp_path: Path, content: str | None, why: str
) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ImproperlyConfigured, match=f"^NAME names {path}, which {why}"):
        check_ca_file("NAME", path)


def test_a_file_with_a_certificate_is_taken(tmp_path: Path) -> None:
    authority = found(tmp_path, "localhost").file
    assert check_ca_file("NAME", authority) == authority
