"""The way to a service: which certificates are believed, and by which proxy it goes, as the operator chose."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.upstream.deadlines import Deadlines
from streaming.upstream.network import Network, choose, client, tls_context
from streaming.upstream.ports import TextChunk
from tests.streaming.upstream.authority import Authority, found
from tests.streaming.upstream.calls import chat_call, failure, opened, run, text_of
from tests.streaming.upstream.proxy import proxying
from tests.streaming.upstream.server import DONE, SSE, STOP, TEXT, answers, holds, sends, serving

HOST = "model.example"
WHOLE = sends(SSE, TEXT, STOP, DONE)
AT_ONCE_S = 0.2
# A port that nothing listens on: discard, which needs root.
DEAD = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return found(tmp_path_factory.mktemp("authority"), "localhost", HOST)


@pytest.fixture(autouse=True)
def nothing_chosen() -> Iterator[None]:
    choose(Network())
    yield
    choose(Network())


def by(proxy: str, authority: Authority | None = None, *direct: str) -> None:
    choose(Network(authority.file if authority else None, {"all": proxy}, direct))


# Certificates


async def test_an_authority_that_nobody_vouches_for_is_refused_and_the_log_is_told_what_helps(
    authority: Authority,
) -> None:
    async with serving(WHOLE, reads_request=False, tls=authority.tls) as server:
        error = await failure(chat_call(server.url))
    assert error.code == "tls_failure"
    assert "SIDESTREAM_CA_FILE" in error.detail
    assert "SIDESTREAM_CA_FILE" not in error.message


@pytest.mark.parametrize("variable", ["", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
async def test_an_authority_of_ones_own_is_believed(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    if variable:
        monkeypatch.setenv(variable, str(authority.file))
    choose(Network(None if variable else authority.file))
    async with serving(WHOLE, tls=authority.tls) as server:
        chunks, error = await run(chat_call(server.url))
    assert (text_of(chunks), error) == ("A", None)


async def test_a_certificate_for_another_host_is_refused_all_the_same(authority: Authority) -> None:
    choose(Network(authority.file))
    async with serving(WHOLE, reads_request=False, tls=authority.tls) as server:
        error = await failure(chat_call(server.url.replace("localhost", "127.0.0.1")))
    assert error.code == "tls_failure"


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_what_a_variable_names_comes_beside_the_usual_authorities(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    tls_context.cache_clear()
    usual = tls_context().cert_store_stats()["x509_ca"]
    monkeypatch.setenv(variable, str(authority.file))
    tls_context.cache_clear()
    assert tls_context().cert_store_stats()["x509_ca"] == usual + 1 > 100


def test_a_bundle_of_another_program_that_is_gone_is_no_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "gone.pem"))
    tls_context.cache_clear()
    assert tls_context().cert_store_stats()["x509_ca"] > 100


# Proxies


async def test_a_call_goes_through_the_tunnel_of_a_proxy(authority: Authority) -> None:
    async with serving(WHOLE, tls=authority.tls) as server, proxying(server.port) as proxy:
        by(proxy.url, authority)
        chunks, error = await run(chat_call(f"https://{HOST}/v1"))
    assert (text_of(chunks), error) == ("A", None)
    assert proxy.requests[0].startswith(f"CONNECT {HOST}:443 ".encode())
    assert b"Bearer" not in proxy.requests[0]


async def test_a_plain_call_goes_through_a_proxy(authority: Authority) -> None:
    async with serving(WHOLE) as server, proxying(server.port) as proxy:
        by(proxy.url)
        chunks, error = await run(chat_call(f"http://{HOST}/v1"))
    assert (text_of(chunks), error) == ("A", None)
    assert proxy.requests[0].startswith(f"POST http://{HOST}/v1 ".encode())


async def test_a_question_beside_the_calls_goes_the_same_way(authority: Authority) -> None:
    async with serving(answers("200 OK", b"{}"), tls=authority.tls) as server, proxying(server.port) as proxy:
        by(proxy.url.replace("//", "//user:pass%23word@"), authority)
        async with client(f"https://{HOST}") as asking:
            assert (await asking.get(f"https://{HOST}/models")).json() == {}
    assert b"dXNlcjpwYXNzI3dvcmQ=" in proxy.requests[0]


async def test_a_proxy_is_told_its_password_and_nobody_else_is(authority: Authority) -> None:
    async with serving(WHOLE, tls=authority.tls) as server, proxying(server.port, refuses=True) as proxy:
        by(proxy.url.replace("//", "//user:pass%23word@"), authority)
        error = await failure(chat_call(f"https://{HOST}/v1"))
    assert b"Proxy-Authorization: Basic dXNlcjpwYXNzI3dvcmQ=" in proxy.requests[0]
    assert error.code == "proxy_failure"
    assert not any(secret in f"{error.message}{error.detail}" for secret in ("pass#word", "pass%23word", "dXNlcjpwY"))


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("proxy", [DEAD, "http://no-such-proxy.invalid:3128"])
async def test_a_proxy_that_is_away_is_named_as_what_is_away(scheme: str, proxy: str) -> None:
    by(proxy)
    assert (await failure(chat_call(f"{scheme}://{HOST}/v1"))).code == "proxy_failure"


async def test_a_proxy_that_hangs_is_waited_for_as_long_as_for_any_connection(authority: Authority) -> None:
    async with proxying(9, tunnels=False) as proxy:
        by(proxy.url)
        error = await failure(chat_call(f"https://{HOST}/v1", deadlines=Deadlines(connect_s=0.05)))
        await proxy.left.wait()
    assert error.code == "connect_timeout"


@pytest.mark.parametrize("tunnels", [False, True], ids=["before the tunnel", "before TLS"])
async def test_closing_while_the_way_is_made_ends_it_at_once(tunnels: bool) -> None:
    async with serving(holds(), reads_request=False) as server, proxying(server.port, tunnels=tunnels) as proxy:
        by(proxy.url)
        call = chat_call(f"https://{HOST}/v1")
        reading = asyncio.create_task(run(call))
        await (server if tunnels else proxy).arrived.wait()
        async with asyncio.timeout(AT_ONCE_S):
            assert await call.close()
            await proxy.left.wait()
            _, error = await reading
    assert error is not None
    assert error.code == "call_closed"


async def test_closing_in_the_body_ends_the_tunnel_at_once(authority: Authority) -> None:
    async with serving(holds(SSE, TEXT), tls=authority.tls) as server, proxying(server.port) as proxy:
        by(proxy.url, authority)
        call = await opened(chat_call(f"https://{HOST}/v1"))
        assert isinstance(await anext(call), TextChunk)
        async with asyncio.timeout(AT_ONCE_S):
            assert await call.close()
            await proxy.left.wait()


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"])
async def test_a_dead_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, DEAD)
    async with serving(WHOLE) as server:
        assert (await run(chat_call(server.url)))[1] is None


@pytest.mark.parametrize(
    ("url", "proxied"),
    [
        ("https://api.example.com/v1", True),
        ("https://localhost:1234/v1", False),
        ("http://model.localhost/v1", False),
        ("http://127.0.0.2:8080", False),
        ("http://[::1]:8080", False),
        ("http://0.0.0.0:8080", False),
        ("http://[::ffff:127.0.0.1]:8080", False),
        ("http://[::ffff:10.1.2.3]/v1", False),
        ("https://inside.example.org/v1", False),
        ("https://EXAMPLE.org./v1", False),
        ("https://notexample.org/v1", True),
        ("http://10.1.2.3/v1", False),
        ("http://11.1.2.3/v1", True),
        ("http://192.168.0.7:11434", False),
        ("http://[fd00::7]/v1", False),
    ],
)
def test_this_machine_and_what_is_excepted_are_called_without_it(url: str, proxied: bool) -> None:
    direct = (".example.org", "10.0.0.0/8", "192.168.0.7", "fd00::/8")
    assert (Network(None, {"all": DEAD}, direct).proxy_for(url) == DEAD) is proxied


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("10.1.2.3:8080", "http://10.1.2.3:8080/v1"),
        ("[fd00::7]:8080", "http://[fd00::7]:8080/v1"),
        ("[FD00::7]", "http://[fd00::7]/v1"),
        ("fd00::7", "http://[fd00:0::7]/v1"),
    ],
)
def test_an_excepted_address_may_be_written_with_a_port_or_in_brackets(written: str, url: str) -> None:
    assert Network(None, {"all": DEAD}, (written,)).proxy_for(url) is None
    assert Network(None, {"all": DEAD}, (written,)).proxy_for("http://10.1.2.4") == DEAD


@pytest.mark.parametrize("written", ["*", "example.org:8443", "*.example.org", "EXAMPLE.org"])
def test_exceptions_are_read_as_other_programs_read_them(written: str) -> None:
    network = Network(None, {"all": DEAD}, (written,))
    assert network.proxy_for("https://inside.example.org:8443/v1") is None
    assert (network.proxy_for("http://10.1.2.3") is None) is (written == "*")


def test_a_name_without_a_password_is_as_secret_as_one() -> None:
    assert "t0ken" in Network(None, {"all": "http://t0ken@proxy:3128"}).secrets()


def test_each_scheme_may_have_a_proxy_of_its_own() -> None:
    network = Network(None, {"https": "http://a", "all": "http://b"})
    assert (network.proxy_for("https://x"), network.proxy_for("http://x")) == ("http://a", "http://b")
