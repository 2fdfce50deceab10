"""What README.md says of the interface is what the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.urls import URLPattern, get_resolver

from chatapp.catalogue import availability, parse_catalogue
from chatapp.consumers import BAD_MESSAGE, FAULT, NOT_FOUND, RESTART, TOO_MANY, TRY_LATER
from chatapp.errors import STATUS
from chatapp.upstreams import spec_of
from streaming.upstream.ports import ChatRequest, Message

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROTOCOL = (ROOT / "streaming" / "README.md").read_text(encoding="utf-8")


def routes() -> list[str]:
    patterns = [one for one in get_resolver().url_patterns if isinstance(one, URLPattern)]
    paths = [str(one.pattern) for one in patterns if str(one.pattern).startswith("api/")]
    return sorted({re.sub(r"<uuid:\w+>", "<id>", path) for path in paths})


@pytest.mark.parametrize("path", routes())
def test_every_route_is_described(path: str) -> None:
    assert re.search(rf"/{re.escape(path)}[`?,]", README)


@pytest.mark.parametrize(("code", "status"), STATUS.items())
def test_every_code_stands_beside_its_status(code: str, status: int) -> None:
    rows = re.findall(r"^\| ([\d, ]+) \| (`.*) \|$", README, re.MULTILINE)
    assert [str(status) in statuses for statuses, codes in rows if f"`{code}`" in codes] == [True]


@pytest.mark.parametrize("code", [BAD_MESSAGE, NOT_FOUND, TOO_MANY, FAULT, RESTART, TRY_LATER])
def test_every_code_that_closes_a_socket_is_described(code: int) -> None:
    assert f"| {code} |" in PROTOCOL


def test_the_example_of_a_model_works_word_for_word(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text(README.partition("## Add a model")[2].partition("```toml\n")[2].partition("```")[0], "utf-8")
    (config,) = parse_catalogue(path)
    environ = {"OPENAI_API_KEY": "sk-example"}
    assert availability(config, environ) is None
    spec = spec_of(config, config.address_in(environ) or "")
    body = spec.build_body(ChatRequest(config.model, (Message("user", "Hi"),), {"max_tokens": 50}))
    assert (body["max_completion_tokens"], "max_tokens" in body) == (50, False)
