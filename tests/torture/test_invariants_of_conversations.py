"""What is wrong with whole conversations is noticed, and so is what the site refuses without a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streaming.snapshot import Snapshot
from tests.torture.account import Call, by_generation, idle_workers, in_time, whose
from tests.torture.hurts import RECOVERY_MS, How, Hurt, Hurts, Place
from tests.torture.invariants.conversations import (
    Deleted,
    Held,
    every_call_was_asked_for,
    holds_what_was_asked,
    nothing_is_left,
    refusals_are_explained,
)
from tests.torture.making import ASKED, CALL, ENDED, OPENED, START, hurt, logged
from tests.torture.person import Refusal
from tests.torture.site import Way

HELD = Held(ASKED.conversation, 1, (ASKED,), 1, {ASKED.gen: (ASKED.number, ASKED.model)})
NOTHING = replace(HELD, turns=0, generations={})
DELETED = Deleted(NOTHING, ENDED, (CALL,), (), {1: Snapshot(ASKED.gen)})
NOBODY = Hurts()


def test_a_conversation_that_holds_what_was_asked_breaks_no_promise() -> None:
    assert list(holds_what_was_asked(HELD)) == []


@pytest.mark.parametrize(
    "other",
    [
        {"turns": 2},
        {"generations": {}},
        {"generations": {**HELD.generations, "another": (2, "count")}},
        {"generations": {ASKED.gen: (2, ASKED.model)}},
    ],
    ids=["a doubled turn", "a lost generation", "a doubled generation", "another number"],
)
def test_a_conversation_that_holds_anything_else_is_noticed(other: dict[str, object]) -> None:
    assert len(list(holds_what_was_asked(replace(HELD, **other)))) == 1  # type: ignore[arg-type]


def test_a_deleted_conversation_of_which_nothing_is_left_breaks_no_promise() -> None:
    assert list(nothing_is_left(DELETED, NOBODY)) == []


@pytest.mark.parametrize(
    "left",
    [
        {"held": HELD},
        {"calls": (replace(CALL, closed_mono=None),)},
        {"calls": (replace(CALL, opened_mono=ENDED + 1_500.0),)},
        {"entries": logged([START])},
        {"logged": {1: Snapshot(ASKED.gen, text="a")}},
    ],
    ids=["rows", "an open call", "a new call", "entries", "a text"],
)
def test_what_is_left_of_a_deleted_conversation_is_noticed(left: dict[str, object]) -> None:
    assert list(nothing_is_left(replace(DELETED, **left), NOBODY))  # type: ignore[arg-type]


def refused(status: int | None) -> Refusal:
    return Refusal("GET /sync", status, "", OPENED + 1_000.0, OPENED + 1_200.0)


@pytest.mark.parametrize("status", [None, 500, 502, 503, 504, 4502, 4503])
def test_a_refusal_that_nothing_explains_is_noticed(status: int | None) -> None:
    assert len(list(refusals_are_explained([refused(status)], NOBODY))) == 1


@pytest.mark.parametrize(
    ("status", "place"),
    [(None, Place.FRONT), (500, Place.DATABASE), (502, Place.WEB), (503, Place.REDIS), (4503, Place.WEB_TO_REDIS)],
)
def test_a_refusal_is_explained_by_what_was_hurt_at_that_moment_only(status: int | None, place: Place) -> None:
    for began, explained in ((OPENED + 1_100.0, True), (OPENED - RECOVERY_MS, False), (OPENED + 2_000.0, False)):
        assert (list(refusals_are_explained([refused(status)], hurt(place, began))) == []) is explained


@pytest.mark.parametrize("status", [400, 403, 404, 409, 429])
def test_nothing_explains_that_a_person_who_keeps_to_the_rules_is_refused(status: int) -> None:
    everything = Hurts([one for place in Place for one in hurt(place, OPENED + 1_100.0).noted])
    assert len(list(refusals_are_explained([refused(status)], everything))) == 1


def test_a_call_that_nobody_asked_for_is_noticed() -> None:
    stranger = replace(CALL, asked=("mine and not asked",))
    assert whose(stranger, [ASKED]) is None
    assert len(list(every_call_was_asked_for([stranger], "mine "))) == 1
    assert list(every_call_was_asked_for([stranger], "another's ")) == []


def test_a_call_belongs_to_the_newest_answer_that_was_asked_for_by_then() -> None:
    retry = replace(ASKED, gen="retry", number=2, at_mono=ENDED + 50.0)
    later: Call = replace(CALL, n=8, opened_mono=ENDED + 100.0)
    assert by_generation([CALL, later], [ASKED, retry]) == {ASKED.gen: [CALL], "retry": [later]}


@pytest.mark.parametrize(
    ("outcome", "how", "counts"),
    [("aborted", How.AWAY, False), ("aborted", How.DISTURBED, True), ("finished", How.AWAY, True)],
)
def test_a_request_that_a_silent_way_gave_on_when_its_caller_had_left_is_nobodys(
    outcome: str, how: How, counts: bool
) -> None:
    held: Call = replace(CALL, outcome=outcome, frames=0)
    silence = Hurt(Place.WORKER_TO_UPSTREAM, how, held.way.worker, OPENED - 3_000.0, held.opened_mono - 5.0)
    assert in_time([held], Hurts([silence])) == ([held] if counts else [])
    assert in_time([held], Hurts([replace(silence, number=held.way.worker + 1)])) == [held]


def test_a_worker_that_lives_and_takes_no_tasks_is_noticed_beside_one_that_takes_all() -> None:
    others = replace(CALL, asked=("another's prompt",), way=Way(1, is_safe=False))
    assert idle_workers([CALL, CALL, others], {ASKED.prompt}, workers=2) == {1}
    assert idle_workers([CALL, replace(CALL, way=Way(1, is_safe=True))], {ASKED.prompt}, workers=2) == set()
