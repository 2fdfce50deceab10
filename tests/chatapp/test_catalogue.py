"""The operator's catalogue: what it may say, how it says it wrong, and what people see of it."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

import chatapp
from chatapp.catalogue import CatalogueError, ModelConfig, availability, parse_catalogue, to_public
from chatapp.modelconfig import is_address
from streaming.upstream.deadlines import Deadlines
from streaming.upstream.limits import Limits
from streaming.upstream.scripted import load_scripts

SHIPPED = Path(chatapp.__file__).parent / "models.toml"
GOOD = '[[models]]\nid = "m"\nlabel = "M"\nadapter = "openai_chat"\nmodel = "gpt"\n'


@pytest.fixture
def read(tmp_path: Path):
    """Give a reader of catalogue text."""

    def read(source: str) -> list[ModelConfig]:
        path = tmp_path / "models.toml"
        path.write_text(source, "utf-8")
        return list(parse_catalogue(path))

    return read


@pytest.fixture
def mistakes(read):
    """Give a reader of what is wrong with catalogue text."""

    def mistakes(source: str) -> str:
        with pytest.raises(CatalogueError) as caught:
            read(source)
        return str(caught.value)

    return mistakes


def test_the_shipped_catalogue_offers_two_real_models_and_a_demo() -> None:
    assert [config.id for config in parse_catalogue(SHIPPED)] == ["smollm2-careful", "smollm2-lively", "demo"]


def test_every_example_in_the_shipped_catalogue_can_be_used_as_it_stands(read) -> None:
    lines = SHIPPED.read_text("utf-8").splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("# Others"))
    # What is TOML behind the # begins like TOML; everything else is prose.
    examples = [line.removeprefix("# ") for line in lines[start:] if " = " in line or "[[models]]" in line]
    ids = [config.id for config in read("\n".join(examples).replace("…", "x"))]
    assert ids == ["openai", "anthropic", "openrouter", "ollama", "azure", "own-server"]


def test_the_shipped_demo_names_a_script_that_exists() -> None:
    demo = parse_catalogue(SHIPPED)[-1]
    assert demo.model in load_scripts()


def test_everything_a_model_may_say_is_read(read) -> None:
    source = (
        GOOD
        + """
address = "http://127.0.0.1:8001/v1"
key_env = "KEY"
accent = "think_tags"
system = "Be brief."
params = { temperature = 0.5, stop = ["END"] }
context_tokens = 8192
capabilities = ["reasoning", "tools"]
price = { input = 1, output = 2.5, currency = "EUR", as_of = 2026-01-31 }
[models.deadlines]
idle_s = 5
[models.limits]
line_bytes = 4096
"""
    )
    config = read(source)[0]
    assert (config.deadlines, config.limits) == (Deadlines(idle_s=5), Limits(line_bytes=4096))
    assert (config.params, config.context_tokens) == ({"temperature": 0.5, "stop": ["END"]}, 8192)
    assert config.price is not None
    assert config.price.as_of == date(2026, 1, 31)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", "must be one or more tables"),
        ("models = 3", "must be one or more tables"),
        ("[[models]]", "id in model 1 is missing"),
        ("[[models]]", "adapter in model 1 is missing; it must be one of openai_chat"),
        (GOOD + GOOD, "id in model 'm' is there twice"),
        (GOOD.replace('"m"', '"My Model"'), "must be small letters"),
        (GOOD.replace("openai_chat", "openai"), "must be one of openai_chat"),
        (GOOD + "lable = 'x'", "did you mean label?"),
        (GOOD + "zzz = 1", "is not known; known are"),
        (GOOD + "address = 'ftp://x'", "must be an http or https address"),
        (GOOD + "address = 'http://u:p@x/v1'", "must be an http or https address"),
        (GOOD + "address = 'http://x/v1\u200b'", "must be an http or https address"),
        (GOOD + "address = 'http://x/v1'\naddress_env = 'A'", "exclude each other"),
        (GOOD.replace("openai_chat", "llamacpp"), "llamacpp needs address, or address_env"),
        (GOOD + "accent = 'martian'", "must be one of openai"),
        (GOOD.replace("openai_chat", "anthropic") + "accent = 'xai'", "belongs to the adapter openai_chat only"),
        (GOOD + "background = true", "background in model 'm' belongs to the adapter openai_responses only"),
        (GOOD + "background = 1", "must be true or false"),
        (GOOD + "api_version = '2024-10-21'", "belongs to the adapter azure only"),
        (GOOD.replace("openai_chat", "azure") + "api_version = 'new'", "must be a version"),
        (GOOD.replace("openai_chat", "azure"), "azure needs address, or address_env"),
        (GOOD + "max_running = 0", "must be a whole number above 0"),
        (GOOD + "context_tokens = 1.5", "must be a whole number above 0"),
        (GOOD + "capabilities = ['telepathy']", "must be a list of some of reasoning"),
        (GOOD + "params = { temperature = 3 }", "temperature must be a number from 0 to 2"),
        (GOOD + "params = { warmth = 3 }", "warmth is not a parameter"),
        (GOOD + "params = { top_k = 3 }", "are refused by openai_chat"),
        (GOOD + "price = { input = 1, output = 1, currency = 'USD' }", "price.as_of in model 'm' is missing"),
        (GOOD + "price = { input = -1, output = 1, currency = 'USD', as_of = 2026-01-01 }", "must be a number from 0"),
        (GOOD + "price = { input = nan, output = 1, currency = 'USD', as_of = 2026-01-01 }", "must be a number from 0"),
        (GOOD + "price = { input = 1, output = 1, currency = 'USD', as_of = '2026' }", "without quotes"),
        (GOOD + "deadlines = { idle_s = 0 }", "must be a number above 0"),
        (GOOD + "deadlines = { idel_s = 1 }", "did you mean idle_s?"),
        (GOOD + "limits = 3", "must be a table"),
        (GOOD + "[server]\nport = 1", "server is not known; a catalogue holds [[models]] only"),
        ("[[models]\n", "is not TOML"),
    ],
)
def test_a_mistake_is_named_with_what_to_write_instead(mistakes, source: str, said: str) -> None:
    assert said in mistakes(source)


@pytest.mark.parametrize("written", [
    b"\xef\xbb\xbf" + GOOD.encode(), GOOD.replace("\n", "\r\n").encode(),
    b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode(),
])  # fmt: skip
def test_a_file_that_another_system_s_editor_saved_is_read(tmp_path: Path, written: bytes) -> None:
    path = tmp_path / "models.toml"
    path.write_bytes(written)
    assert [config.id for config in parse_catalogue(path)] == ["m"]


@pytest.mark.parametrize("mark", ["\ufeff", ""])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_utf_16_is_told_as_that(tmp_path: Path, encoding: str, mark: str) -> None:
    path = tmp_path / "models.toml"
    path.write_bytes(f"{mark}{GOOD}".encode(encoding))
    with pytest.raises(CatalogueError, match=r"is UTF-16 or UTF-32\. Save it as UTF-8\."):
        parse_catalogue(path)


@pytest.mark.parametrize("char", ["\ufeff", "\u200b", "\u00a0"])
def test_an_invisible_character_that_spoils_the_file_is_named(mistakes, char: str) -> None:
    told = mistakes(GOOD + f"{char}key_env = 'A'")
    assert f"In line 6, column 1 stands U+{ord(char):04X}" in told


@pytest.mark.parametrize("char", ["\u200b", "\u00a0", "\u034f", "\u3164", "\ufe0f"])
def test_an_invisible_character_in_a_model_s_name_is_a_mistake(mistakes, char: str) -> None:
    assert "without invisible characters" in mistakes(GOOD.replace('"gpt"', f'"gpt{char}"'))


def test_all_mistakes_are_reported_together(mistakes) -> None:
    text = mistakes(GOOD + "lable = 'x'\ncontext_tokens = -1\n" + GOOD)
    assert len(text.splitlines()) == 3


@pytest.mark.parametrize(
    ("addition", "line"),
    [
        ("context_tokens = -1", 6),
        ("params = { temperature = 3 }", 6),
        ("[models.params]\ntemperature = 3", 7),
        ("[models.price]\ninput = 1", 6),
        ("params.temperature = 3", 6),
        (GOOD.replace('"m"', '"n"') + "context_tokens = -1", 11),
    ],
)
def test_a_mistake_is_named_with_its_line(mistakes, addition: str, line: int) -> None:
    assert f", line {line}: " in mistakes(GOOD + addition).splitlines()[0]


def test_a_key_that_stands_in_the_file_is_refused_and_not_repeated(mistakes) -> None:
    text = mistakes(GOOD + "key_env = 'sk-very-secret-key'")
    assert "the NAME of an environment variable" in text
    assert "very-secret" not in text


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"none\.toml: cannot be read"):
        parse_catalogue(tmp_path / "none.toml")


def test_a_model_without_its_key_says_which_variable_to_set(read) -> None:
    config = read(GOOD + "key_env = 'OPENAI_API_KEY'")[0]
    assert availability(config, {}) == "Set OPENAI_API_KEY to use this model."


@pytest.mark.parametrize("environ", [{"K": ""}, {"K": "  "}])
def test_an_empty_key_is_no_key(read, environ: dict[str, str]) -> None:
    assert availability(read(GOOD + "key_env = 'K'")[0], environ) is not None


def test_a_model_with_its_key_can_be_used(read) -> None:
    config = read(GOOD + "key_env = 'K'")[0]
    assert (availability(config, {"K": "x"}), config.key_in({"K": " x "})) == (None, "x")


def test_the_local_model_says_how_to_start_its_server() -> None:
    assert "manage.py up" in (availability(parse_catalogue(SHIPPED)[0], {}) or "")


def test_the_local_model_can_be_used_when_its_server_is_known() -> None:
    assert availability(parse_catalogue(SHIPPED)[0], {"SIDESTREAM_LLAMACPP_URL": "http://127.0.0.1:8080"}) is None


def test_an_address_from_the_environment_is_checked(read) -> None:
    config = read(GOOD + "address_env = 'A'")[0]
    assert availability(config, {"A": "localhost:80"}) == "A must be an http or https address."


def test_a_scripted_model_can_always_be_used() -> None:
    assert availability(parse_catalogue(SHIPPED)[-1], {}) is None


def test_a_provider_s_address_is_known(read) -> None:
    assert read(GOOD)[0].address_in({}) == "https://api.openai.com/v1"


def test_people_see_neither_addresses_nor_names_of_variables(read) -> None:
    config = read(GOOD + "address = 'http://internal.example/v1'\nkey_env = 'SECRET_KEY'\nsystem = 'hidden'")[0]
    shown = json.dumps(to_public(config, None))
    assert [word for word in ("internal", "SECRET_KEY", "hidden", "gpt") if word in shown] == []


def test_people_see_why_a_model_cannot_be_used(read) -> None:
    public = to_public(read(GOOD)[0], "Because.")
    assert (public["available"], public["reason"]) == (False, "Because.")


def test_a_price_is_shown_with_its_day(read) -> None:
    config = read(GOOD + "price = { input = 1, output = 2, currency = 'USD', as_of = 2026-01-31 }")[0]
    assert to_public(config, None)["price"]["as_of"] == "2026-01-31"


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ("http://127.0.0.1:8080", True),
        ("https://api.example.com/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://", False),
        ("http://x:port", False),
        ("http://x?y=1", False),
        ("file:///etc", False),
        ("http://[bad", False),
    ],
)
def test_an_address_is_http_with_a_host_and_nothing_else(value: str, fits: bool) -> None:
    assert is_address(value) is fits
