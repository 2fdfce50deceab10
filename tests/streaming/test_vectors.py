"""The reducer against the vectors that it shares with the browser's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streaming import errors
from streaming.events import BODIES, VIEWS, event_from_dict, view_from_dict
from streaming.snapshot import Snapshot, fold, fold_view, snapshot_to_dict

VECTORS = Path(__file__).parent.parent / "vectors"
CASES = [case for file in sorted(VECTORS.glob("*.json")) for case in json.loads(file.read_text("utf-8"))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_vector_folds_to_its_snapshot(case: dict[str, Any]) -> None:
    snapshot, raised = run(completed(case["steps"]))
    assert raised == case.get("raises")
    assert snapshot_to_dict(snapshot) == {**snapshot_to_dict(Snapshot("g")), **case["expect"]}


@pytest.mark.parametrize("case", [case for case in CASES if "tail" in case], ids=lambda case: case["name"])
def test_what_blocks_do_not_show_is_the_tail(case: dict[str, Any]) -> None:
    snapshot, _ = run(completed(case["steps"]))
    assert snapshot.text[snapshot.shown :] == case["tail"]


def test_every_event_and_view_of_a_generation_has_a_vector() -> None:
    seen = {step["type"] for case in CASES for step in case["steps"]}
    assert seen == {*BODIES, "block", "cancel"}


def completed(steps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Fill in what the vectors leave out."""
    seq = 0
    for step in steps:
        if step["type"] in VIEWS:
            yield {"v": 1, "gen": "g", **step}
        else:
            seq += 1
            yield {"v": 1, "gen": "g", "attempt": 1, "seq": seq, "at": 1000, **step}


def run(steps: Iterator[dict[str, Any]]) -> tuple[Snapshot, str | None]:
    """Fold until a step raises; give what was reached and the error's name."""
    snapshot = Snapshot("g")
    for step in steps:
        try:
            snapshot = apply(snapshot, step)
        except errors.StreamingError as exc:
            return snapshot, type(exc).__name__
    return snapshot, None


def apply(snapshot: Snapshot, step: dict[str, Any]) -> Snapshot:
    if step["type"] in VIEWS:
        return fold_view(snapshot, view_from_dict(step))  # type: ignore[arg-type]
    return fold(snapshot, event_from_dict(step))
