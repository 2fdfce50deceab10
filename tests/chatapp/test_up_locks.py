"""The requirement files install on a fresh machine exactly what was tested, from whatever index it uses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements.txt", "requirements-test.txt")
_PIN = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _entries(lock: str) -> list[str]:
    """Give each requirement with its continued lines joined."""
    lines = [
        line for line in lock.replace("\\\n", " ").splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    assert lines
    return lines


def _wanted(name: str) -> set[str]:
    lines = (line.partition("#")[0].strip() for line in _read(name).splitlines())
    names = (re.match(r"[A-Za-z0-9-]+", line) for line in lines if not line.startswith("-"))
    return {found[0].lower() for found in names if found}


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_requirement_is_pinned_and_hashed(name: str) -> None:
    loose = [
        entry for entry in _entries(_read(name)) if not re.match(r"[a-z0-9-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", entry)
    ]
    assert loose == []


@pytest.mark.parametrize("name", [*LOCKS, "requirements.in", "requirements-test.in"])
def test_no_requirement_file_names_an_index(name: str) -> None:
    assert re.findall(r"https?://|--(?:extra-)?index-url|--find-links|--trusted-host", _read(name)) == []


@pytest.mark.parametrize("name", LOCKS)
def test_all_that_is_asked_for_is_in_the_lock(name: str) -> None:
    locked = {pin[0] for pin in _PIN.findall(_read(name))}
    assert _wanted(name.replace(".txt", ".in")) - locked == set()


def test_the_tests_run_on_the_very_versions_that_are_installed_for_use() -> None:
    assert set(_PIN.findall(_read("requirements.txt"))) <= set(_PIN.findall(_read("requirements-test.txt")))


def test_the_weights_bring_no_other_package() -> None:
    assert {"llm", "llama-cpp-python", "valkey"} & {pin[0] for pin in _PIN.findall(_read("requirements.txt"))} == set()
