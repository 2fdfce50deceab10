"""What README.md says of the interface is what the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.urls import URLPattern, get_resolver

from chatapp.consumers import BAD_MESSAGE, FAULT, NOT_FOUND, RESTART, TOO_MANY, TRY_LATER
from chatapp.errors import STATUS

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
