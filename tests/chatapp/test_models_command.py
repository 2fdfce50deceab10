"""`manage.py models`, as a person at the keyboard sees it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from chatapp.modelconfig import ModelConfig
from chatapp.offer import Offer

MODELS = """
[[models]]
id = "echo"
label = "Echo"
adapter = "scripted"
model = "echo@5000"

[[models]]
id = "refused"
label = "Refused"
adapter = "scripted"
model = "refuse-401"

[[models]]
id = "keyless"
label = "Keyless"
adapter = "openai_chat"
model = "gpt"
key_env = "SIDESTREAM_TEST_KEY"
context_tokens = 8192
price = { input = 1, output = 2.5, currency = "EUR", as_of = 2026-01-31 }
"""


@pytest.fixture(autouse=True)
def _catalogue(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MODELS_FILE = tmp_path / "models.toml"
    settings.MODELS_FILE.write_text(MODELS)
    monkeypatch.setenv("SIDESTREAM_DISCOVER", "0")


def models(*arguments: str) -> str:
    out = io.StringIO()
    call_command("models", *arguments, stdout=out)
    return out.getvalue()


def test_every_model_is_listed_with_why_it_cannot_be_used() -> None:
    text = models()
    assert "echo  Echo  [scripted]\n    can be used" in text
    assert "cannot be used: Set SIDESTREAM_TEST_KEY to use this model." in text


def test_a_model_that_can_be_used_says_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIDESTREAM_TEST_KEY", "x")
    line = "can be used; context 8,192 tokens; 1 in, 2.5 out EUR a million tokens on 2026-01-31"
    assert line in models("keyless")


def test_a_test_tells_how_fast_a_model_answers() -> None:
    text = models("echo", "--test")
    assert "first token after 0.0" in text
    assert "tokens/s, finish stop" in text


def test_a_test_tells_the_code_and_the_remedy_of_a_failure() -> None:
    assert "unauthorized: The model service refused the key." in models("refused", "--test")


def test_without_a_test_no_model_is_called() -> None:
    assert "unauthorized" not in models("refused")


def test_a_model_that_does_not_exist_is_named() -> None:
    with pytest.raises(CommandError, match="There is no model nobody"):
        models("echo", "nobody")


def test_a_catalogue_with_mistakes_names_them_all(settings: Settings) -> None:
    settings.MODELS_FILE.write_text("[[models]]\nid = 7\nlable = 'x'\n")
    with pytest.raises(CommandError, match=r"line 2(.|\n)*line 3"):
        models()


def test_a_label_of_a_service_commands_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ModelConfig("ollama:x", "Red\x1b[31m\nok\u202e (Ollama)", "openai_chat", "x", address="http://127.0.0.1:9")
    monkeypatch.setattr(Offer, "configs", lambda _: [found])
    assert r"ollama:x  Red\x1b[31m\nok\u202e (Ollama)  [openai_chat]" in models().splitlines()
