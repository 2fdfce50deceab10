from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streaming.upstream.turns import AtOnce, Place, Turns


def order(turns: Turns, waiting: dict[str, Place]) -> list[str]:
    """Let those who have a turn leave one by one; give the names in the order in which they got theirs."""
    served: list[str] = []
    while len(served) < len(waiting):
        name = next(name for name, place in waiting.items() if place.granted.done() and name not in served)
        served.append(name)
        waiting[name].give_back()
    return served


async def test_as_many_as_allowed_go_at_once() -> None:
    turns = Turns(2)
    assert [turns.ask("a").granted.done() for _ in range(3)] == [True, True, False]


async def test_whoever_leaves_makes_room_for_one() -> None:
    turns = Turns(1)
    first, second, third = (turns.ask("a") for _ in range(3))
    first.give_back()
    assert (second.granted.done(), third.granted.done(), turns.waiting) == (True, False, 1)


async def test_leaving_twice_makes_room_once() -> None:
    turns = Turns(1)
    first, second, third = (turns.ask("a") for _ in range(3))
    first.give_back()
    first.give_back()
    assert (second.granted.done(), third.granted.done()) == (True, False)


async def test_whoever_gives_up_waiting_takes_nobody_s_turn() -> None:
    turns = Turns(1)
    first, second, third = (turns.ask("a") for _ in range(3))
    second.give_back()
    first.give_back()
    assert (second.granted.done(), third.granted.done()) == (False, True)


async def test_owners_take_turns_whatever_each_of_them_wants() -> None:
    turns = Turns(1)
    waiting = {name: turns.ask(name[0]) for name in ("a1", "a2", "a3", "a4", "b1", "c1", "b2")}
    assert order(turns, waiting) == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]


async def test_where_there_is_no_limit_nobody_waits() -> None:
    place = AtOnce()
    place.give_back()
    assert place.granted.done()


@given(steps=st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60), most=st.integers(1, 4))
async def test_never_more_run_than_allowed_and_never_fewer_while_some_wait(
    steps: list[tuple[str, bool]], most: int
) -> None:
    turns = Turns(most)
    places: list[Place] = []
    for owner, asks in steps:
        if asks or not places:
            places.append(turns.ask(owner))
        else:
            places.pop(len(owner) % len(places)).give_back()
        running = sum(place.granted.done() for place in places)
        assert running == min(most, len(places))
