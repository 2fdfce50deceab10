"""What the README says to paste is what CI runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chatapp.management.commands.ci import STEPS, Command

ROOT = Path(__file__).resolve().parents[2]


def _section(title: str) -> str:
    found = re.search(
        rf"^## {title}$(.*?)(?=^## |\Z)", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert found, f"README.md has no section {title}"
    return found[1]


def _command(title: str) -> str:
    """Give the one line to paste."""
    blocks = re.findall(r"```sh\n(.*?)\n```", _section(title), re.DOTALL)
    assert "\n" not in blocks[0]
    return str(blocks[0])


def test_ci_runs_the_test_line_of_the_readme_last() -> None:
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == _command("Test")


def test_the_start_line_installs_the_lock_and_starts() -> None:
    assert "requirements.txt" in _command("Start")
    assert _command("Start").endswith("manage.py up")


def test_every_variable_that_the_settings_read_is_in_the_readme() -> None:
    source = (ROOT / "chatapp" / "settings.py").read_text(encoding="utf-8")
    read = set(re.findall(r'read_\w+\(\s*"([A-Z_]+)"', source))
    assert {name for name in read if f"`{name}`" not in _section("Configuration")} == set()


@pytest.mark.parametrize("name", ["REDIS_URL", "SIDESTREAM_LLAMACPP_URL"])
def test_the_variables_that_up_looks_at_are_in_the_readme(name: str) -> None:
    assert f"`{name}`" in _section("Configuration")


def test_the_counts_of_the_tests_are_the_last_that_is_printed() -> None:
    assert list(STEPS)[-1] == "tests"


def test_a_step_that_is_not_there_is_told_with_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        Command().handle(steps=["lint", "links"])
    assert capsys.readouterr().err.startswith("No such step: links. There are: lint, format, ")
