"""Models that are found: at once what is known, and everything else in the background."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from chatapp.discovery import Discovery
from chatapp.offer import OfferFile
from chatapp.sources import SOURCES, Source

LIST = b'{"data": [{"id": "big"}, {"id": "small"}]}'
CATALOGUE = """
[[models]]
id = "mine"
label = "Mine"
adapter = "openai_chat"
model = "big"
address = "http://127.0.0.1:1/v1"
"""


class Provider:
    """A server that lists models, until a test says otherwise."""

    def __init__(self) -> None:
        self.status, self.body = 200, LIST
        self.keys: list[str | None] = []
        self.may_answer = threading.Event()
        self.may_answer.set()


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider.keys.append(self.headers["Authorization"])
            provider.may_answer.wait(10)
            self.send_response(provider.status)
            self.end_headers()
            self.wfile.write(provider.body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        provider.url = f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield provider
        provider.may_answer.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def sources(provider: Provider) -> tuple[Source, ...]:
    """A provider that wants a key, and a server on this machine."""
    groq = next(source for source in SOURCES if source.id == "groq")
    vllm = next(source for source in SOURCES if source.id == "vllm")
    url: str = provider.url  # type: ignore[attr-defined]
    return replace(groq, list_url=f"{url}/groq"), replace(vllm, list_url=f"{url}/vllm", address="http://127.0.0.1:1/v1")


def ids(discovery: Discovery) -> list[str]:
    return [config.id for config in discovery.models()]


def test_what_a_source_lists_can_be_chosen(sources: tuple[Source, ...], provider: Provider) -> None:
    discovery = Discovery({"GROQ_API_KEY": "the-key"}, sources)
    discovery.look()
    assert ids(discovery) == ["groq:big", "groq:small", "vllm:big", "vllm:small"]
    assert sorted(map(str, provider.keys)) == ["Bearer the-key", "None"]


def test_a_question_never_waits_for_an_answer(sources: tuple[Source, ...], provider: Provider) -> None:
    provider.may_answer.clear()
    discovery = Discovery({}, sources)
    assert ids(discovery) == []


async def test_what_was_asked_for_is_there_a_little_later(sources: tuple[Source, ...]) -> None:
    discovery = Discovery({}, sources)
    while not ids(discovery):
        await asyncio.sleep(0.005)
    assert ids(discovery) == ["vllm:big", "vllm:small"]


def test_a_list_is_asked_for_again_only_when_it_is_old(sources: tuple[Source, ...], provider: Provider) -> None:
    now = [0.0]
    discovery = Discovery({}, sources, lambda: now[0])
    discovery.look()
    assert not discovery._is_due(sources[1])
    now[0] = 16.0
    assert discovery._is_due(sources[1])


def test_it_can_be_switched_off(sources: tuple[Source, ...], provider: Provider) -> None:
    discovery = Discovery({"SIDESTREAM_DISCOVER": "0"}, sources)
    discovery.look()
    assert (ids(discovery), discovery.find("vllm:big"), provider.keys) == ([], None, [])


def test_a_model_can_be_called_before_it_is_listed(sources: tuple[Source, ...]) -> None:
    config = Discovery({}, sources).find("vllm:org/some-model:latest")
    assert config is not None
    assert (config.model, config.address) == ("org/some-model:latest", "http://127.0.0.1:1/v1")


@pytest.mark.parametrize("model", ["groq:big", "nobody:big", "vllm:", "vllm", ""])
def test_an_id_of_nobody_who_can_be_asked_is_no_model(sources: tuple[Source, ...], model: str) -> None:
    assert Discovery({}, sources).find(model) is None


def test_a_server_that_has_gone_takes_its_models_along(sources: tuple[Source, ...], provider: Provider) -> None:
    discovery = Discovery({}, sources)
    discovery.look()
    provider.status = 500
    discovery.look()
    assert (ids(discovery), discovery.problems) == ([], {})


@pytest.mark.parametrize(("status", "left", "code"), [(503, 2, "overloaded"), (401, 0, "unauthorized")])
def test_a_provider_s_models_stay_while_its_key_is_good(
    sources: tuple[Source, ...], provider: Provider, status: int, left: int, code: str
) -> None:
    discovery = Discovery({"GROQ_API_KEY": "the-key"}, sources[:1])
    discovery.look()
    provider.status = status
    discovery.look()
    assert (len(ids(discovery)), discovery.problems["groq"].code) == (left, code)


@pytest.mark.parametrize("body", [b"<html>", b"", b"[1,2", b"\xff"])
def test_what_is_no_list_is_a_problem_and_no_crash(
    sources: tuple[Source, ...], provider: Provider, body: bytes
) -> None:
    provider.body = body
    discovery = Discovery({"GROQ_API_KEY": "the-key"}, sources[:1])
    discovery.look()
    assert discovery.problems["groq"].code == "not_a_stream"


def test_a_key_is_not_repeated(
    sources: tuple[Source, ...], provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    provider.status, provider.body = 401, b"Incorrect key: the-key"
    Discovery({"GROQ_API_KEY": "the-key"}, sources[:1]).look()
    assert "Incorrect key" in caplog.text
    assert "the-key" not in caplog.text


def test_what_the_catalogue_names_is_not_offered_twice(sources: tuple[Source, ...], tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text(CATALOGUE)
    discovery = Discovery({}, sources)
    offer = OfferFile(str(path), {}, discovery).current()
    before = [model["id"] for model in offer.public()]
    discovery.look()
    assert (before, [model["id"] for model in offer.public()]) == (["mine"], ["mine", "vllm:small"])
