"""What the documents say is checked against the code, so that they cannot come to lie."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streaming.events import BODIES, FINISHES, VIEWS
from streaming.lifecycle import DRIVER_LOST, TRANSITIONS, State
from streaming.snapshot import Snapshot, snapshot_to_dict

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROTOCOL = (ROOT / "streaming" / "README.md").read_text(encoding="utf-8")


def drawn() -> set[tuple[str, str, str]]:
    """Read the diagram's arrows as (from, event, to)."""
    arrows = re.findall(r"^    (\w+) --> (\w+): (.+)$", PROTOCOL, re.MULTILINE)
    return {(before, event.split(" ")[0], after) for before, after, events in arrows for event in events.split(", ")}


def in_the_table() -> set[tuple[str, str, str]]:
    rows = {
        (before.value, kind.type, after.value) for before, row in TRANSITIONS.items() for kind, after in row.items()
    }
    return rows | {(before, "error", State.INTERRUPTED.value) for before, kind, _ in rows if kind == "error"}


def test_the_lifecycle_diagram_is_the_table() -> None:
    assert drawn() == in_the_table()
    assert f"error {DRIVER_LOST}" in PROTOCOL


@pytest.mark.parametrize("name", [*BODIES, *VIEWS, *FINISHES, "events", "snapshot", "resync", "renew", "ping", "ack"])
def test_every_name_that_travels_is_in_the_protocol_document(name: str) -> None:
    assert re.search(rf"\b{name}\b", PROTOCOL)


@pytest.mark.parametrize("field", snapshot_to_dict(Snapshot("g")))
def test_every_field_of_a_snapshot_is_in_the_protocol_document(field: str) -> None:
    assert f'"{field}"' in PROTOCOL


def test_the_words_are_in_the_glossary() -> None:
    words = "conversation pane turn generation number attempt upstream chunk event view seq log cursor gap frame"
    for word in [*words.split(), "driver", "lease", "terminal", "cancel", "retry", "resume", "continue", "boundary"]:
        assert re.search(rf"^\| .*\b{word}\b.* \|", PROTOCOL, re.MULTILINE), word


@pytest.mark.parametrize("path", sorted((ROOT / "streaming" / "decisions").glob("*.md")), ids=lambda path: path.stem)
def test_a_decision_says_context_decision_and_consequences(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [word for word in ("**Context.**", "**Decision.**", "**Consequences.**") if word not in text] == []


def bounds() -> list[list[str]]:
    """Read the cells of the README's table of bounds."""
    section = README.partition("## Bounds\n")[2].partition("\n## ")[0]
    rows = [row for row in section.splitlines() if row.startswith("| ")][1:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


@pytest.mark.parametrize("row", bounds(), ids=lambda row: row[0])
def test_every_bound_has_its_test(row: list[str]) -> None:
    tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row[-1])
    assert len(row) == 4
    assert tests
    for path, name in tests:
        assert re.search(rf"^(?:async )?def {name}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE), name
