"""The models on offer: read again when the file changes, and what is built for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chatapp.catalogue import CatalogueError, ModelConfig
from chatapp.modelconfig import ACCENTS_AT
from chatapp.offer import Offer, OfferFile
from chatapp.upstreams import Upstreams, spec_of
from streaming.errors import UpstreamError
from streaming.upstream.background import BackgroundUpstream
from streaming.upstream.breaker import FAILURES_TO_REST, Rest
from streaming.upstream.dialects import HttpUpstream
from streaming.upstream.guarded import GuardedUpstream
from streaming.upstream.llamacpp import LlamaCppUpstream
from streaming.upstream.openai_chat import ACCENTS
from streaming.upstream.ports import Image, Message
from streaming.upstream.scripted import ScriptedUpstream
from tests.streaming.fakes import job

ONE = """
[[models]]
id = "one"
label = "One"
adapter = "scripted"
model = "echo"
system = "Be brief."
context_tokens = 1000
"""
KEYED = """
[[models]]
id = "keyed"
label = "Keyed"
adapter = "openai_chat"
model = "big-model"
address = "https://models.example/v1"
key_env = "KEY"
"""
LOCAL = """
[[models]]
id = "local"
label = "Local"
adapter = "llamacpp"
model = "small"
address_env = "ADDRESS"
"""
AZURE = """
[[models]]
id = "cloud"
label = "Cloud"
adapter = "azure"
model = "my-deployment"
address = "https://my-resource.example"
api_version = "2025-04-01-preview"
"""
BACKGROUND = """
[[models]]
id = "slow"
label = "Slow"
adapter = "openai_responses"
model = "thinker"
background = true
max_running = 1
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "models.toml"
    path.write_text(ONE)
    return path


def change(path: Path, text: str) -> None:
    """Save the file anew, so that its time differs however quick the test is."""
    before = path.stat().st_mtime_ns
    path.write_text(text)
    os.utime(path, ns=(before + 1_000_000, before + 1_000_000))


def ids(offer: Offer) -> list[str]:
    return [model["id"] for model in offer.public()]


def test_a_file_that_did_not_change_is_not_read_again(path: Path) -> None:
    file = OfferFile(str(path), {})
    assert file.current() is file.current()


def test_a_change_of_the_file_counts_at_once(path: Path) -> None:
    file = OfferFile(str(path), {})
    file.current()
    change(path, ONE + KEYED)
    assert ids(file.current()) == ["one", "keyed"]


def test_a_mistake_leaves_the_old_models_on_offer(path: Path) -> None:
    file = OfferFile(str(path), {})
    file.current()
    change(path, "[[models]]\nid = 7\n")
    assert ids(file.current()) == ["one"]


def test_a_file_that_is_gone_leaves_the_old_models_on_offer(path: Path) -> None:
    file = OfferFile(str(path), {})
    file.current()
    path.unlink()
    assert ids(file.current()) == ["one"]


def test_a_mistake_from_the_beginning_is_an_error(path: Path) -> None:
    path.write_text("[[models]]\nid = 7\n")
    with pytest.raises(CatalogueError):
        OfferFile(str(path), {}).current()


def test_a_prompt_may_use_what_the_answer_leaves(path: Path) -> None:
    assert OfferFile(str(path), {}).current().prompt_budget("one", 200) == 800


def test_a_prompt_is_left_half_of_the_context_at_least(path: Path) -> None:
    assert OfferFile(str(path), {}).current().prompt_budget("one", 5000) == 500


def test_a_model_that_is_gone_has_neither_system_prompt_nor_budget(path: Path) -> None:
    offer = OfferFile(str(path), {}).current()
    assert (offer.system("gone"), offer.prompt_budget("gone", None)) == ("", None)


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("one", ScriptedUpstream),
        ("keyed", HttpUpstream),
        ("local", LlamaCppUpstream),
        ("cloud", HttpUpstream),
        ("slow", BackgroundUpstream),
    ],
)
def test_each_adapter_has_its_upstream(path: Path, model: str, kind: type) -> None:
    path.write_text(ONE + KEYED + LOCAL + AZURE + BACKGROUND)
    environ = {"KEY": "secret", "ADDRESS": "http://127.0.0.1:8080"}
    upstream, _ = Upstreams(OfferFile(str(path), environ).current, environ).prepare(job(model=model))
    assert isinstance(upstream.inner if isinstance(upstream, GuardedUpstream) else upstream, kind)


def test_a_call_names_the_model_as_its_service_does(path: Path) -> None:
    path.write_text(KEYED)
    environ = {"KEY": "secret"}
    _, request = Upstreams(OfferFile(str(path), environ).current, environ).prepare(job(model="keyed"))
    assert request.model == "big-model"


def test_an_upstream_is_kept_between_calls(path: Path) -> None:
    upstreams = Upstreams(OfferFile(str(path), {}).current, {})
    assert upstreams.prepare(job(model="one"))[0] is upstreams.prepare(job(model="one"))[0]


def test_an_upstream_is_built_again_when_its_model_changed(path: Path) -> None:
    file = OfferFile(str(path), {})
    upstreams = Upstreams(file.current, {})
    before, _ = upstreams.prepare(job(model="one"))
    change(path, ONE + "deadlines = { total_s = 5 }\n")
    assert upstreams.prepare(job(model="one"))[0] is not before


@pytest.mark.parametrize("model", ["gone", "keyed"])
def test_a_model_that_cannot_be_called_any_more_says_so(path: Path, model: str) -> None:
    path.write_text(KEYED)
    with pytest.raises(UpstreamError) as caught:
        Upstreams(OfferFile(str(path), {}).current, {}).prepare(job(model=model))
    assert caught.value.code == "model_unavailable"


def test_an_azure_deployment_is_called_with_its_version(path: Path) -> None:
    path.write_text(AZURE)
    config = OfferFile(str(path), {}).current().find("cloud")
    assert config is not None
    assert spec_of(config, "https://our.example").path.endswith("?api-version=2025-04-01-preview")


def test_a_model_that_is_not_said_to_see_is_sent_no_images(path: Path) -> None:
    seeing = job(model="one", messages=(Message("user", "What is this?", (Image("image/png", b"x"),)),))
    with pytest.raises(UpstreamError) as caught:
        Upstreams(OfferFile(str(path), {}).current, {}).prepare(seeing)
    assert caught.value.code == "unsupported_images"


async def test_a_model_with_a_limit_has_a_queue_and_others_have_none(path: Path) -> None:
    change(path, ONE + BACKGROUND)
    upstreams = Upstreams(OfferFile(str(path), {}).current, {})
    places = [upstreams.queue(job(model=model)) for model in ("slow", "slow", "one", "one", "gone")]
    assert [place.granted.done() for place in places] == [True, False, True, True, True]


def test_models_of_one_service_rest_together(path: Path) -> None:
    path.write_text(KEYED + KEYED.replace('"keyed"', '"other"'))
    told: list[tuple[str, Rest | None]] = []
    environ = {"KEY": "secret"}
    upstreams = Upstreams(
        OfferFile(str(path), environ).current, environ, lambda address, rest: told.append((address, rest)), lambda: 5.0
    )
    first, _ = upstreams.prepare(job(model="keyed"))
    other, request = upstreams.prepare(job(model="other"))
    assert isinstance(first, GuardedUpstream)
    for _ in range(FAILURES_TO_REST):
        first.failed(UpstreamError("connect_refused", "It is not there."), 5.0)
    with pytest.raises(UpstreamError, match="failing since"):
        other.call(request)
    assert [address for address, _ in told] == ["https://models.example/v1"]


@pytest.mark.parametrize(("now", "available"), [(1020.0, False), (1031.0, True)])
def test_a_model_whose_service_rests_says_until_when(path: Path, now: float, available: bool) -> None:
    path.write_text(KEYED)
    offer = OfferFile(str(path), {"KEY": "secret"}).current()
    (shown,) = offer.public({"https://models.example/v1": Rest(1000.0, 1030.0, "overloaded")}, now)
    assert shown["available"] is available
    assert (shown["reason"] is None) is available


def test_the_rest_of_another_service_changes_nothing(path: Path) -> None:
    offer = OfferFile(str(path), {}).current()
    assert offer.public({"https://elsewhere.example": Rest(0.0, 99.0, "overloaded")}, 1.0)[0]["available"]


@pytest.mark.parametrize(
    ("address", "named", "accent"),
    [
        ("https://api.openai.com/v1", "", "openai"),
        ("https://API.OpenAI.com:443/v1", "", "openai"),
        ("https://api.mistral.ai/v1", "", "mistral"),
        ("https://api.openai.com/v1", "think_tags", "think_tags"),
        ("https://openai.example/v1", "", ""),
        ("http://127.0.0.1:8001/v1", "", ""),
        (None, "", ""),
    ],
)
def test_a_provider_is_known_by_its_address(address: str | None, named: str, accent: str) -> None:
    config = ModelConfig("m", "M", "openai_chat", "m", accent=named)
    assert config.accent_at(address) == accent


def test_every_accent_of_an_address_exists() -> None:
    assert set(ACCENTS_AT.values()) <= set(ACCENTS)
