"""Schedules: the same from the same seed, and of everything something."""

from __future__ import annotations

from random import Random

import pytest

from streaming.upstream.script import pieces
from tests.torture.faults import WEIGHTS
from tests.torture.hurts import How, Hurts, Place
from tests.torture.plan import Talk, plan_of
from tests.torture.scripts import ALL, COUNTING, FAILING, QUEUEING, Script

PLANS = [plan_of(seed, 20) for seed in range(200)]
TALKS: list[Talk] = [talk for plan in PLANS for talk in plan.talks]


def test_a_seed_gives_the_same_schedule_every_time() -> None:
    assert plan_of(7, 20) == plan_of(7, 20)


def test_every_fault_is_drawn_by_some_seed() -> None:
    assert {blow.fault for plan in PLANS for blow in plan.blows} == {fault.__name__ for fault in WEIGHTS}


def test_every_model_is_asked_by_some_seed() -> None:
    asked = {model for talk in TALKS for turn in talk.turns for model in turn}
    assert asked == {script.name for script in (*COUNTING, *QUEUEING, *FAILING)}


def test_whatever_people_do_some_seed_lets_them_do() -> None:
    assert any(talk.stops for talk in TALKS)
    assert any(talk.stops_all_s is not None for talk in TALKS)
    assert any(talk.deletes_s is not None for talk in TALKS)
    assert {kind for talk in TALKS for _, kind in talk.again} == {"retry", "continue"}


def test_the_panes_of_a_turn_have_models_of_their_own() -> None:
    turns = [turn for talk in TALKS for turn in talk.turns]
    assert all(len(set(turn)) == len(turn) for turn in turns)


@pytest.mark.parametrize("script", COUNTING, ids=lambda script: script.name)
def test_a_counting_script_lasts_some_seconds(script: Script) -> None:
    assert script in ALL.values()
    assert 2 < script.seconds < 12


def test_pieces_are_the_text() -> None:
    script = Random(1).choice(COUNTING)
    assert "".join(pieces(script.text("x", 7))) == script.text("x", 7)


def test_no_two_calls_share_a_word() -> None:
    short = [script for script in ALL.values() if script.tokens < 200]
    said = [set(script.text("p", call).split()) for call, script in enumerate(short, start=1)]
    numbers = [{word for word in words if "." in word} for words in said]
    assert sum(map(len, numbers)) == len(set[str]().union(*numbers))


def test_what_was_hurt_is_felt_from_its_beginning_until_some_time_after_it_was_healed() -> None:
    hurts = Hurts()
    hurt = hurts.begin(Place.WORKER, How.ENDED, 1)
    assert hurts.felt([Place.WORKER], hurt.began + 1_000_000, hurt.began + 1_000_001, number=1) == [hurt]
    assert hurts.felt([Place.WORKER], hurt.began - 2, hurt.began - 1) == []
    assert hurts.felt([Place.WORKER], hurt.began, hurt.began, number=0) == []
    hurt.heal()
    assert hurts.felt([Place.WORKER], hurt.over + 1_000_000, hurt.over + 1_000_001) == []
