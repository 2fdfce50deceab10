"""The line of those who wait: fair, whole, and the same for the worker and for the page."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.admission import Waiting, in_fair_order, line
from chatapp.database import in_database
from chatapp.models import Generation
from chatapp.slots import Slots
from chatapp.wiring import Worker
from streaming import runtime
from streaming.lifecycle import State
from tests.chatapp.people import Person

owners = st.lists(st.sampled_from("abc"), max_size=20)
under_way = st.dictionaries(st.sampled_from("abc"), st.integers(0, 5))


def waiting(asked: list[str]) -> list[Waiting]:
    return [Waiting(str(place), owner) for place, owner in enumerate(asked)]


@given(owners, under_way)
def test_everybody_stands_in_the_line_once(asked: list[str], running: dict[str, int]) -> None:
    order = in_fair_order(waiting(asked), running)
    assert sorted(order, key=int) == [str(place) for place in range(len(asked))]


@given(owners, under_way)
def test_one_owners_own_stay_in_the_order_of_asking(asked: list[str], running: dict[str, int]) -> None:
    order = [int(gen) for gen in in_fair_order(waiting(asked), running)]
    for owner in set(asked):
        own = [gen for gen in order if asked[gen] == owner]
        assert own == sorted(own)


@given(owners, under_way)
def test_nobody_is_given_more_while_another_who_waits_has_less(asked: list[str], running: dict[str, int]) -> None:
    has, left = Counter(running), Counter(asked)
    for gen in in_fair_order(waiting(asked), running):
        owner = asked[int(gen)]
        assert has[owner] == min(has[other] for other in left if left[other])
        has[owner] += 1
        left[owner] -= 1


# Slots


class Work:
    """What a worker would drive, and who waits for it."""

    def __init__(self, *line: str) -> None:
        self.waiting = list(line)
        self.driven: list[str] = []
        self.held: set[str] = set()  # by other processes

    async def drive(self, gen: str) -> bool:
        if gen in self.held or gen not in self.waiting:
            return False
        self.waiting.remove(gen)
        self.driven.append(gen)
        await asyncio.sleep(0)
        return True

    async def line(self) -> list[str]:
        return list(self.waiting)


async def test_a_free_worker_takes_what_it_is_told_of() -> None:
    work = Work("a", "b")
    await Slots(work.drive, work.line, 2).fill("b")
    assert work.driven == ["b"]


async def test_the_last_slot_goes_to_who_is_first_in_line() -> None:
    work = Work("a", "b")
    await Slots(work.drive, work.line, 1).fill("b")
    assert work.driven == ["a"]


async def test_what_another_process_took_is_passed_over() -> None:
    work = Work("a", "b", "c")
    work.held = {"a"}
    await Slots(work.drive, work.line, 1).fill("c")
    assert work.driven == ["b"]


async def test_a_message_whose_generation_is_done_takes_another() -> None:
    work = Work("a")
    await Slots(work.drive, work.line, 2).fill("z")
    assert work.driven == ["a"]


async def test_a_message_takes_nothing_when_nothing_waits() -> None:
    work = Work()
    await Slots(work.drive, work.line, 1).fill("z")
    assert work.driven == []


async def test_what_no_message_brought_takes_a_free_slot_and_no_other() -> None:
    work, free = Work("a", "b"), asyncio.Event()
    drive = work.drive

    async def slowly(gen: str) -> bool:
        await free.wait()
        return await drive(gen)

    slots = Slots(slowly, work.line, 1)
    assert slots.offer("a")
    message = asyncio.create_task(slots.fill("b"))
    await asyncio.sleep(0)
    assert not slots.offer("b")
    free.set()
    await message
    assert work.driven == ["a", "b"]


async def test_a_worker_that_comes_to_its_end_takes_no_offers() -> None:
    work = Work("a")
    slots = Slots(work.drive, work.line, 1)
    slots.close()
    assert not slots.offer("a")


@pytest.mark.django_db(transaction=True)
async def test_a_worker_that_hears_no_broker_still_answers(
    guest: Person, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "UNCLAIMED_MS", 0)
    monkeypatch.setattr(runtime, "REAP_S", 0.01)
    (one,) = (await guest.ask(await guest.begin()))["generations"]
    while (await Generation.objects.aget(pk=one["gen"])).state != State.COMPLETED:
        await asyncio.sleep(0.01)


@given(st.permutations("abcdef"), st.integers(1, 6))
def test_as_many_messages_as_generations_leave_none_behind(messages: list[str], slots: int) -> None:
    async def run() -> Work:
        work = Work(*"abcdef")
        shared, free = Slots(work.drive, work.line, slots), asyncio.Semaphore(slots)

        async def thread(gen: str) -> None:
            async with free:
                await shared.fill(gen)

        await asyncio.gather(*map(thread, messages))
        return work

    assert sorted(asyncio.run(run()).driven) == list("abcdef")


@pytest.mark.django_db(transaction=True)
async def test_one_question_does_not_stand_behind_all_of_anothers(guest: Person, alice: Person, running: Any) -> None:
    await running(guest)
    theirs = await guest.ask(await guest.begin(), "Hello", "echo", "warm")
    hers = await alice.ask(await alice.begin())
    expected = [one["gen"] for one in (*hers["generations"], *theirs["generations"])]
    assert await in_database(line) == expected
