"""Generations that nobody drives any more, or that are gone: what is kept of them, and who ends them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streaming import takeover
from streaming.events import Event, TextDelta, event_from_dict
from streaming.lifecycle import State
from streaming.log.codec import event_of
from streaming.log.ports import LEASE_MS, Ref
from streaming.runtime import Runtime
from streaming.snapshot import fold_all
from streaming.store import Job
from streaming.upstream.ports import FinishChunk, Opened, TextChunk
from tests.streaming.fakes import HELLO, job, until
from tests.streaming.logs import START, Writer, write
from tests.streaming.process import Clock, Process


async def test_a_lost_driver_is_ended_as_interrupted_with_its_text_kept(process: Process, clock: Clock) -> None:
    one = process.store.add(job(state=State.RUNNING, attempt=1))
    dead = Writer(one.ref, (await process.log.claim(one.ref, 0)).attempt)
    await write(process.log, dead.batch(START, TextDelta("half an ans")))
    clock.offset += LEASE_MS
    await process.runtime.drive(one.ref.gen)
    snapshot = await process.snapshot(one.ref)
    assert (snapshot.state, snapshot.text, snapshot.attempt) == (State.INTERRUPTED, "half an ans", 2)
    outcome = process.store.outcomes[one.ref.gen]
    assert outcome.snapshot.text == "half an ans"
    assert len(outcome.events.splitlines()) == 4
    assert process.upstream.calls == []


async def lost_after(process: Process, clock: Clock, *bodies: Any) -> Job:
    """Give a generation whose driver wrote so much and died."""
    one = process.store.add(job(state=State.RUNNING, attempt=1))
    dead = Writer(one.ref, (await process.log.claim(one.ref, 0)).attempt)
    await write(process.log, dead.batch(START, *bodies))
    clock.offset += LEASE_MS
    return one


def archived(process: Process, ref: Ref) -> list[Event]:
    return [event_from_dict(json.loads(line)) for line in process.store.outcomes[ref.gen].events.split("\n")]


async def test_a_lost_answer_whose_snapshot_vanished_is_kept_from_its_entries(process: Process, clock: Clock) -> None:
    one = await lost_after(process, clock, TextDelta("half "), TextDelta("an answer"))
    process.log._metas.clear()  # type: ignore[attr-defined]
    await process.runtime.drive(one.ref.gen)
    assert process.store.outcomes[one.ref.gen].snapshot.text == "half an answer"
    assert [event.seq for event in archived(process, one.ref)] == [1, 2, 3, 4, 5]
    assert (await process.snapshot(one.ref)).state is State.INTERRUPTED


async def test_a_lost_answer_whose_entries_vanished_is_archived_from_its_snapshot(
    process: Process, clock: Clock
) -> None:
    one = await lost_after(process, clock, TextDelta("half "), TextDelta("an "), TextDelta("answer"))
    del process.log._logs[one.ref.conversation][:3]  # type: ignore[attr-defined]
    await process.runtime.drive(one.ref.gen)
    events = archived(process, one.ref)
    assert [event.seq for event in events] == [1, 2, 3, 4]
    assert fold_all(one.ref.gen, events).text == "half an answer"
    assert process.log._metas[one.ref].state is State.INTERRUPTED  # type: ignore[attr-defined]


async def test_what_a_lost_driver_wrote_twice_is_archived_once(process: Process, clock: Clock) -> None:
    one = await lost_after(process, clock, TextDelta("half an answer"))
    log = process.log._logs[one.ref.conversation]  # type: ignore[attr-defined]
    log.extend(list(log))
    await process.runtime.drive(one.ref.gen)
    assert [event.seq for event in archived(process, one.ref)] == [1, 2, 3, 4]


async def test_the_reaper_finds_a_lost_driver_by_itself(
    process: Process, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = process.store.add(job(state=State.RUNNING, attempt=1))
    dead = Writer(one.ref, (await process.log.claim(one.ref, 0)).attempt)
    await write(process.log, dead.batch(START))
    clock.offset += LEASE_MS
    await process.runtime._look_for_the_lost()
    await until(lambda: one.ref.gen in process.store.outcomes)
    assert process.store.outcomes[one.ref.gen].snapshot.state is State.INTERRUPTED


async def test_a_zombie_that_wakes_writes_nothing_anywhere(process: Process, clock: Clock) -> None:
    process.upstream.script = (Opened(), TextChunk("before"))
    one, driving = process.start()
    await until(lambda: process.log._metas.get(one.ref) and process.log._metas[one.ref].text)  # type: ignore[attr-defined]
    clock.offset += LEASE_MS
    other = Process(process.log, clock)
    other.store = process.store
    other.runtime = Runtime(process.log, process.store, other.upstream.prepare, other.dispatched.append, clock)
    await other.runtime.drive(one.ref.gen)
    after = await process.events(one.ref)
    process.upstream.calls[0].text(" after")
    process.upstream.calls[0].say(FinishChunk("stop"))
    await driving
    assert await process.events(one.ref) == after
    assert process.store.jobs[one.ref.gen].state is State.INTERRUPTED
    assert process.upstream.calls[0].closed


async def test_an_unclaimed_generation_is_sent_to_the_queue_again(process: Process, clock: Clock) -> None:
    one = process.store.add(job(queued_at=clock()))
    await process.runtime._look_for_the_lost()
    assert process.dispatched == []
    clock.offset += 6_000
    await process.runtime._look_for_the_lost()
    assert process.dispatched == [one.ref.gen]


@pytest.mark.parametrize("text", ["Hello", "a\u2028b\x85c\r\nd"])
async def test_a_committed_end_that_the_log_misses_is_written_there(process: Process, clock: Clock, text: str) -> None:
    process.upstream.script = (Opened(), TextChunk(text), FinishChunk("stop"))
    one, driving = process.start()
    await driving
    whole = await process.events(one.ref)
    _forget_the_end(process.log, one.ref)
    clock.offset += LEASE_MS
    await process.runtime._look_for_the_lost()
    await until(lambda: process.log._metas[one.ref].state is State.COMPLETED)  # type: ignore[attr-defined]
    assert [event.body for event in await process.events(one.ref)] == [event.body for event in whole]


def _forget_the_end(log: Any, ref: Ref) -> None:
    meta, entries = log._metas[ref], log._logs[ref.conversation]
    entries.pop()
    meta.facts.pop()
    meta.seq, meta.state = meta.seq - 1, State.RUNNING


async def test_a_vanished_log_is_written_again_by_its_driver(process: Process) -> None:
    process.upstream.script = (Opened(), TextChunk("kept "))
    one, driving = process.start()
    await until(lambda: process.log._metas.get(one.ref) and process.log._metas[one.ref].text)  # type: ignore[attr-defined]
    process.log._metas.clear()  # type: ignore[attr-defined]
    process.log._logs.clear()  # type: ignore[attr-defined]
    process.upstream.calls[0].text("text")
    process.upstream.calls[0].say(FinishChunk("stop"))
    await driving
    assert (await process.snapshot(one.ref)).text == "kept text"


async def test_a_vanished_log_without_its_driver_ends_as_lost_and_calls_nobody(process: Process, clock: Clock) -> None:
    one = process.store.add(job(state=State.RUNNING, attempt=3))
    await process.runtime._look_for_the_lost()
    assert process.store.jobs[one.ref.gen].state is State.RUNNING
    clock.offset += LEASE_MS + 1
    await process.runtime._look_for_the_lost()
    await until(lambda: one.ref.gen in process.store.outcomes)
    snapshot = process.store.outcomes[one.ref.gen].snapshot
    assert (snapshot.state, snapshot.error["code"], snapshot.attempt) == (State.INTERRUPTED, "driver_lost", 4)  # type: ignore[index]
    assert "lost together with the log" in snapshot.error["message"]  # type: ignore[index]
    assert process.upstream.calls == []


async def test_a_driver_that_died_before_its_first_word_is_told_as_that(process: Process, clock: Clock) -> None:
    """Its log knows it, so nothing was lost."""
    one = process.store.add(job(state=State.RUNNING, attempt=1))
    await process.log.claim(one.ref, 0)
    clock.offset += LEASE_MS
    await process.runtime.drive(one.ref.gen)
    snapshot = await process.snapshot(one.ref)
    assert (snapshot.state, snapshot.error["code"]) == (State.INTERRUPTED, "driver_lost")  # type: ignore[index]
    assert process.upstream.calls == []


async def test_a_driver_whose_generation_was_removed_stops_and_writes_nothing(process: Process) -> None:
    process.upstream.script = (Opened(), TextChunk("a"))
    one, driving = process.start()
    await until(lambda: process.upstream.calls)
    del process.store.jobs[one.ref.gen]
    await process.log.remove(one.ref.conversation, [one.ref])
    await driving
    assert process.upstream.calls[0].closed
    assert await process.events(one.ref) == []


async def test_a_driver_whose_row_vanished_is_found_by_its_reaper(process: Process) -> None:
    process.upstream.script = (Opened(), TextChunk("a"))
    one, driving = process.start()
    await until(lambda: process.upstream.calls)
    del process.store.jobs[one.ref.gen]
    await process.runtime._look_for_the_lost()
    await driving
    assert process.upstream.calls[0].closed
    assert await process.events(one.ref) == []


async def test_a_repair_ends_a_log_whose_answer_was_told_again(process: Process, clock: Clock) -> None:
    """The first entries had gone by age, so the archive is numbered anew; and whoever committed it died then."""
    one = await lost_after(process, clock, TextDelta("half "), TextDelta("an "), TextDelta("answer"), TextDelta("!"))
    del process.log._logs[one.ref.conversation][:3]  # type: ignore[attr-defined]
    append = process.log.append
    process.log.append = dead  # type: ignore[method-assign]
    with pytest.raises(Died):
        await process.runtime.drive(one.ref.gen)
    process.log.append = append  # type: ignore[method-assign]
    clock.offset += LEASE_MS
    await process.runtime.drive(one.ref.gen)
    last = (await process.log.range(one.ref.conversation, "0-0", "9" * 14 + "-0", 100))[-1]
    assert event_of(one.ref.gen, last).body == archived(process, one.ref)[-1].body
    assert process.log._metas[one.ref].state is State.INTERRUPTED  # type: ignore[attr-defined]


class Died(Exception):
    """The process, at this point."""


async def dead(_: Any) -> Any:
    raise Died


async def test_an_answer_longer_than_a_page_of_its_log_is_kept_whole(
    process: Process, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(takeover, "_PAGE", 3)
    words = [f"{n} " for n in range(10)]
    one = await lost_after(process, clock, *map(TextDelta, words))
    process.log._metas.clear()  # type: ignore[attr-defined]
    await process.runtime.drive(one.ref.gen)
    assert process.store.outcomes[one.ref.gen].snapshot.text == "".join(words)


async def test_an_end_that_the_log_missed_for_long_is_found_by_the_next_long_look(
    process: Process, clock: Clock
) -> None:
    process.upstream.script = HELLO
    one, driving = process.start()
    await driving
    _forget_the_end(process.log, one.ref)
    clock.offset += 10 * 60_000
    process.store.ended_at[one.ref.gen] = clock() - 10 * 60_000
    await process.runtime._look_for_the_lost()
    await until(lambda: process.log._metas[one.ref].state is State.COMPLETED)  # type: ignore[attr-defined]


async def test_a_lease_of_a_clock_that_stepped_back_is_judged_after_a_lease(process: Process, clock: Clock) -> None:
    one = await lost_after(process, clock, TextDelta("half"))
    process.log._metas[one.ref].lease = clock() + 3_600_000  # type: ignore[attr-defined]
    await process.runtime._look_for_the_lost()
    assert process.store.outcomes == {}
    clock.offset += LEASE_MS + 1
    await process.runtime._look_for_the_lost()
    await until(lambda: one.ref.gen in process.store.outcomes)


async def test_a_generation_asked_for_by_a_clock_ahead_of_ours_is_sent_again_in_time(
    process: Process, clock: Clock
) -> None:
    one = process.store.add(job(queued_at=clock() + 3_600_000))
    await process.runtime._look_for_the_lost()
    clock.offset += 6_000
    await process.runtime._look_for_the_lost()
    assert process.dispatched == [one.ref.gen]
