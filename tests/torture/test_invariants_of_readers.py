"""A page that shows something else than the truth is noticed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streaming.lifecycle import State
from streaming.snapshot import Block
from tests.torture.evidence import Evidence, Lost
from tests.torture.making import (
    TEXT,
    cut_off,
    failed,
    lost,
    names_broken,
    whole,
)
from tests.torture.page import Seen, wrong_blocks

TRUTH = whole()


def with_row(**changes: object) -> Evidence:
    return replace(TRUTH, row=replace(TRUTH.row, **changes))  # type: ignore[arg-type]


def with_page(seen: Seen) -> Evidence:
    return replace(TRUTH, seen=(seen,))


@pytest.mark.parametrize(
    ("lie", "promise"),
    [
        ({"text": TEXT[:-1], "shown": len(TEXT) - 1}, "pages_agree"),
        ({"state": State.RUNNING}, "pages_agree"),
        ({"error": {"code": "driver_lost"}}, "pages_agree"),
        ({"shown": 3}, "blocks_are_the_texts"),
        ({"blocks": ()}, "blocks_are_the_texts"),
        ({"blocks": (Block("<p>other</p>", sealed=True),)}, "blocks_are_the_texts"),
    ],
    ids=["less text", "no end", "an error", "fewer characters as blocks", "no blocks", "other blocks"],
)
def test_a_page_that_shows_something_else_is_noticed(lie: dict[str, object], promise: str) -> None:
    (seen,) = TRUTH.seen
    assert seen.snapshot is not None
    other = replace(seen, snapshot=replace(seen.snapshot, **lie))  # type: ignore[arg-type]
    assert names_broken(with_page(other)) == {promise}


def test_a_page_that_leaves_an_answer_out_is_noticed() -> None:
    (seen,) = TRUTH.seen
    assert names_broken(with_page(replace(seen, snapshot=None))) == {"pages_agree"}


def test_stored_blocks_that_are_not_the_texts_are_noticed() -> None:
    assert names_broken(with_row(blocks=("<p>other</p>",))) == {"blocks_are_the_texts"}


def test_a_page_with_a_hole_between_its_blocks_is_noticed_at_once() -> None:
    (seen,) = TRUTH.seen
    assert seen.snapshot is not None
    gap = (Block("<p>a</p>", sealed=True), Block("", sealed=False), Block("<p>b</p>", sealed=True))
    assert wrong_blocks(seen.snapshot) == []
    assert wrong_blocks(replace(seen.snapshot, blocks=(*gap[:1], Block("", sealed=True)))) == []
    assert len(wrong_blocks(replace(seen.snapshot, blocks=gap))) == 1


def test_a_page_that_once_showed_a_false_end_is_noticed() -> None:
    (seen,) = TRUTH.seen
    assert names_broken(with_page(replace(seen, first_end=State.FAILED))) == {"pages_agree"}


def test_text_that_was_taken_back_is_noticed() -> None:
    (seen,) = TRUTH.seen
    assert names_broken(with_page(replace(seen, longest=TEXT + "!"))) == {"nothing_is_taken_back"}


def test_text_that_the_suite_destroyed_may_be_missing_only_when_no_driver_was_left() -> None:
    shorter = cut_off(TEXT[:10], failed("driver_lost", TEXT[:10]), attempt=2)
    assert shorter.archive is not None
    began = replace(shorter.archive.events[0], attempt=1)
    told = replace(shorter, archive=replace(shorter.archive, events=(began, *shorter.archive.events[1:])))
    (seen,) = shorter.seen
    longer = replace(seen, longest=TEXT)
    for evidence, is_excused in ((told, True), (shorter, False)):
        excused = replace(evidence, seen=(longer,), losses=lost(Lost.STATE))
        assert ("nothing_is_taken_back" in names_broken(excused)) is not is_excused
