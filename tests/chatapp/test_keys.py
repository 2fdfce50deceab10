"""A key that cannot be sent is told by its variable and the place in it, wherever it is met, and never shown."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from django.core.management import call_command
from pytest_django import Settings

from chatapp.catalogue import availability, parse_catalogue
from chatapp.discovery import Discovery
from chatapp.keys import mistake_in_key, read_key
from chatapp.models import Generation
from chatapp.sources import SOURCES, Source
from chatapp.upstreams import build_upstream
from chatapp.wiring import Worker
from streaming.errors import UpstreamError
from streaming.upstream.ports import ChatRequest, Message
from tests.chatapp.people import Person

NAME = "SIDESTREAM_TEST_KEY"
GOOD = "sk-example-0001"
CATALOGUE = f"""
[[models]]
id = "keyed"
label = "Keyed"
adapter = "openai_chat"
model = "gpt"
address = "http://127.0.0.1:1/v1"
key_env = "{NAME}"
"""


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("sk-exam\u200bple-0001", "character 8 is U+200B zero width space"),
        ("\u201cexample-0002\u201d", "character 1 is U+201C left double quotation mark"),
        ("gsk-\u028bexample-0003", "character 5 is U+028B latin small letter v with hook"),
        ("  sk-\u00a0example", "character 6 is U+00A0 no-break space"),
        ("sk-one sk-two", "character 7 is U+0020 space"),
        ("sk-one\nsk-two", "character 7 is U+000A a control character"),
        ("sk-one\x00", "character 7 is U+0000"),
        ("\ufeffsk-one", "character 1 is U+FEFF zero width no-break space"),
        ("sk-\udce2one", "character 4 is a byte that is not UTF-8"),
        ("sk\u2010example", "character 3 is U+2010 hyphen"),
        ('"sk-example"', "it stands in quotation marks"),
    ],
)
def test_a_key_that_cannot_be_sent_is_told_by_its_place(value: str, told: str) -> None:
    mistake = mistake_in_key({NAME: value}, NAME)
    assert mistake is not None
    assert mistake.startswith(f"{NAME} cannot be used as a key: {told}")
    assert "example" not in mistake
    assert mistake.isascii()


@pytest.mark.parametrize("value", [GOOD, f" {GOOD}\n", f"\t{GOOD}\u00a0", "AKIA:secret/+=:token", ""])
def test_a_key_that_can_be_sent_has_no_mistake(value: str) -> None:
    assert mistake_in_key({NAME: value}, NAME) is None
    assert read_key({NAME: value}, NAME) == (value.strip() or None)


@pytest.fixture
def keyed(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Offer a model whose key holds an invisible character; give that key."""
    settings.MODELS_FILE = tmp_path / "models.toml"
    settings.MODELS_FILE.write_text(CATALOGUE)
    monkeypatch.setenv("SIDESTREAM_DISCOVER", "0")
    monkeypatch.setenv(NAME, "sk-exam\u200bple-0001")
    return "sk-exam"


def test_a_model_with_such_a_key_is_offered_with_the_reason(keyed: str, settings: Settings) -> None:
    (config,) = parse_catalogue(Path(settings.MODELS_FILE))
    assert "character 8 is U+200B" in str(availability(config, {NAME: "sk-exam\u200bple-0001"}))


def test_the_command_lists_it_with_the_reason(keyed: str) -> None:
    out = io.StringIO()
    call_command("models", "--test", stdout=out, stderr=out)
    assert f"cannot be used: {NAME} cannot be used as a key: character 8 is U+200B" in out.getvalue()
    assert keyed not in out.getvalue()


def test_one_provider_s_key_hides_no_other_provider_s_models(caplog: pytest.LogCaptureFixture) -> None:
    environ = {"OPENAI_API_KEY": "sk-exam\u200bple-0001", "GROQ_API_KEY": "gsk-\u028bexample-0003"}
    discovery = Discovery(environ, tuple(source for source in SOURCES if source.key_env in environ))
    discovery.look()
    told = {source: (one.code, one.message.partition(":")[0]) for source, one in discovery.problems.items()}
    assert told == {
        "openai": ("bad_credentials", "OPENAI_API_KEY cannot be used as a key"),
        "groq": ("bad_credentials", "GROQ_API_KEY cannot be used as a key"),
    }
    assert "example" not in caplog.text
    assert "sk-exam" not in caplog.text


def test_a_fault_of_ours_with_one_source_is_that_source_s_problem(caplog: pytest.LogCaptureFixture) -> None:
    def explode(key: str, _url: str, _content: bytes) -> dict[str, str]:
        raise ValueError(f"cannot sign with {key}")

    broken = Source("broken", "Broken", "openai_chat", "http://127.0.0.1:1", "http://127.0.0.1:1/models",
                    SOURCES[0].read, "BROKEN_KEY", authorise=explode)  # fmt: skip
    discovery = Discovery({"BROKEN_KEY": GOOD}, (broken,))
    discovery.look()
    assert discovery.problems["broken"].code == "internal_error"
    assert "ValueError at test_keys.py" in caplog.text
    assert GOOD not in caplog.text


@pytest.mark.django_db(transaction=True)
async def test_an_answer_whose_key_became_unusable_ends_at_once_and_says_so(
    guest: Person, worker: Worker, keyed: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as before:
        before.setenv(NAME, GOOD)
        asked = await guest.ask(await guest.begin(), "Hi", "keyed")
    gen = asked["generations"][0]["gen"]
    await worker.runtime.drive(gen)
    error = (await Generation.objects.aget(pk=gen)).error
    assert (error["code"], NAME in error["message"]) == ("model_unavailable", True)
    assert keyed not in caplog.text


@pytest.mark.parametrize(
    "adapter", ["openai_chat", "azure", "anthropic", "gemini", "bedrock", "llamacpp", "openai_responses"]
)
async def test_a_call_with_such_a_key_ends_with_a_code_of_its_own(keyed: str, settings: Settings, adapter: str) -> None:
    (config,) = parse_catalogue(Path(settings.MODELS_FILE))
    model = replace(config, adapter=adapter, background=adapter == "openai_responses")
    upstream = build_upstream(model, "http://127.0.0.1:1", f"{keyed}\u200bple-0001")
    call = upstream.call(ChatRequest("m", (Message("user", "Hi"),), {"max_tokens": 9}))
    with pytest.raises(UpstreamError) as caught:
        _ = [chunk async for chunk in call]
    await call.close()
    assert (caught.value.code, caught.value.retryable) == ("bad_credentials", False)
    assert keyed not in caught.value.message + caught.value.detail
