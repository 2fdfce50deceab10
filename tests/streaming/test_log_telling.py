"""How a log tells drivers and readers: requests to stop, removals, notices, and what a tail waits for."""

from __future__ import annotations

import asyncio
import json

from streaming.errors import Fenced
from streaming.events import (
    Cancelled,
    CancelView,
    view_from_dict,
)
from streaming.lifecycle import State
from streaming.log.codec import turn_notice, wire
from streaming.log.ports import Log, Tail
from tests.streaming.cases import MemoryCase, RedisCase
from tests.streaming.logs import START, absent, claimed, folded, new_ref, stored, texts, write


async def test_a_cancel_is_told_to_the_next_append_with_its_first_asker(log: Log) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START))
    await log.cancel(ref, "alice")
    await log.cancel(ref, "bob")
    answer = await write(log, writer.batch())
    assert answer.cancel is not None
    assert answer.cancel.by == "alice"


async def test_a_cancel_before_any_claim_is_told_to_the_claim(log: Log) -> None:
    ref = new_ref()
    await log.cancel(ref, "alice")
    claim = await log.claim(ref, 0)
    assert claim.granted
    assert claim.cancel is not None


async def test_a_cancel_after_the_end_says_that_it_ended(log: Log) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START, Cancelled("user", "closed", 3, 0)))
    answer = await log.cancel(ref, "alice")
    assert (answer.granted, answer.state) == (False, State.CANCELLED)


async def test_a_cancel_is_told_to_readers_once(log: Log) -> None:
    ref = new_ref()
    await claimed(log, ref)
    asked = (await log.cancel(ref, "user")).cancel
    await log.cancel(ref, "operator")
    (logged,) = await log.range(ref.conversation, "0-0", "99999999999999-0", 10)
    assert asked is not None
    assert view_from_dict(json.loads(logged.entry.payload)) == CancelView(ref.gen, asked.at, "user")


async def test_a_snapshot_tells_of_an_open_cancel_request(log: Log) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START))
    asked = (await log.cancel(ref, "user")).cancel
    assert asked is not None
    assert (await stored(log, ref)).cancel_requested == {"at": asked.at, "by": "user"}
    await write(log, writer.batch(Cancelled("user", "closed", 3, 0)))
    assert (await folded(log, ref)).cancel_requested is None


async def test_a_snapshot_tells_of_a_request_that_came_before_any_driver(log: Log) -> None:
    ref = new_ref()
    await log.cancel(ref, "guest")
    assert (await stored(log, ref)).cancel_requested["by"] == "guest"  # type: ignore[index]


async def test_a_lease_tells_whether_its_driver_knows_of_the_cancel(case: MemoryCase | RedisCase) -> None:
    ref = new_ref()
    writer = await claimed(case.log, ref)
    request = (await case.log.cancel(ref, "user")).cancel
    assert request is not None
    (before,) = await case.log.leases([ref])
    while (await case.log.position(ref.conversation))[1] == request.at:
        pass  # The log's clock counts milliseconds; what comes within one proves nothing.
    await write(case.log, writer.batch(START))
    (after,) = await case.log.leases([ref])
    assert before is not None
    assert after is not None
    assert (before.knows_of(request), after.knows_of(request)) == (False, True)


async def test_what_was_removed_is_gone_and_its_driver_fenced(log: Log) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START, *texts("a")))
    await log.remove(ref.conversation, [ref])
    answers = await log.append([writer.batch(*texts("b")), writer.everything()])
    assert [type(answer) for answer in answers] == [Fenced, Fenced]
    assert await log.range(ref.conversation, "0-0", "99999999999999-0", 10) == []
    assert await absent(log, ref)


async def test_what_was_removed_cannot_be_claimed_again(log: Log) -> None:
    ref = new_ref()
    await log.remove(ref.conversation, [ref])
    assert not (await log.claim(ref, 0)).granted


async def test_a_removal_is_told_to_its_driver(log: Log) -> None:
    ref = new_ref()
    listener = log.cancellations()
    heard = asyncio.ensure_future(anext(listener))
    while not heard.done():
        await log.remove(ref.conversation, [ref])
        await asyncio.wait({heard}, timeout=0.05)
    assert heard.result() == ref.gen
    await listener.aclose()  # type: ignore[attr-defined]


async def test_cancellations_are_published(log: Log) -> None:
    ref = new_ref()
    listener = log.cancellations()
    heard = asyncio.ensure_future(anext(listener))
    while not heard.done():
        await log.cancel(ref, "alice")
        await asyncio.wait({heard}, timeout=0.05)
    assert heard.result() == ref.gen
    await listener.aclose()  # type: ignore[attr-defined]


async def test_a_tail_gets_what_comes_after_its_cursors(log: Log) -> None:
    ref = new_ref()
    writer = await claimed(log, ref)
    await write(log, writer.batch(START))
    cursor, _ = await log.position(ref.conversation)
    await write(log, writer.batch(*texts("new")))
    tail = log.tail()
    (logged,) = (await tail.read({ref.conversation: cursor}))[ref.conversation]
    assert logged.entry.payload == "new"
    await tail.close()


async def a_waiting_tail(log: Log) -> tuple[Tail, asyncio.Future[None]]:
    tail = log.tail()
    await tail.wait(1)  # The first finds out where the log is.
    await tail.wait(1)
    await tail.wait(1)
    return tail, asyncio.ensure_future(tail.wait(60_000))


async def test_a_waiting_tail_is_woken_by_a_write(log: Log) -> None:
    tail, waiting = await a_waiting_tail(log)
    await write(log, (await claimed(log, new_ref())).batch(START))
    await waiting
    await tail.close()


async def test_a_waiting_tail_is_woken_by_a_notice(log: Log) -> None:
    tail, waiting = await a_waiting_tail(log)
    await log.announce(new_ref().conversation, turn_notice({"id": "t"}))
    await waiting
    await tail.close()


async def test_a_waiting_tail_is_woken_by_a_request_to_stop(log: Log) -> None:
    tail, waiting = await a_waiting_tail(log)
    ref = new_ref()
    await claimed(log, ref)
    await log.cancel(ref, "user")
    await waiting
    await tail.close()


async def test_a_waiting_tail_is_interrupted(log: Log) -> None:
    tail, waiting = await a_waiting_tail(log)
    await tail.interrupt()
    await waiting
    await tail.close()


async def test_an_interrupt_between_two_waits_is_not_lost(log: Log) -> None:
    tail, waiting = await a_waiting_tail(log)
    await tail.interrupt()
    await waiting
    await tail.interrupt()
    await tail.wait(60_000)
    await tail.close()


async def test_a_tail_waits_no_longer_than_told(log: Log) -> None:
    tail = log.tail()
    await tail.wait(30)
    await tail.wait(30)
    await tail.close()


async def test_a_notice_reaches_readers_as_it_was_written(log: Log) -> None:
    ref = new_ref()
    cursor = await log.announce(ref.conversation, turn_notice({"id": "t1"}))
    (logged,) = await log.range(ref.conversation, "0-0", cursor, 10)
    assert wire("", logged) == '{"v":1,"type":"turn","turn":{"id":"t1"}}'


async def test_a_notice_of_a_deleted_conversation_is_not_written(log: Log) -> None:
    ref = new_ref()
    await log.remove(ref.conversation, [])
    assert await log.announce(ref.conversation, turn_notice({"id": "t1"})) == ""
    assert await log.range(ref.conversation, "0-0", "99999999999999-0", 10) == []
