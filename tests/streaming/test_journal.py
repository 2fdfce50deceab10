"""A journal and a log that loses replies, tails and everything still agree in the end."""

from __future__ import annotations

import asyncio
import itertools

from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import Fenced, LogLost, LogUnavailable
from streaming.events import BlockView, Done, ReasoningDelta, Start, TextDelta, ToolDelta, events_of
from streaming.journal import Journal
from streaming.log.codec import body_of
from streaming.log.memory import MemoryLog
from streaming.log.ports import Appended, Kind
from tests.streaming.logs import START, folded, new_ref

WORDS = st.text(alphabet="ab\n🌍é", min_size=1, max_size=5)
SAYS = st.one_of(
    WORDS.map(TextDelta), WORDS.map(ReasoningDelta), WORDS.map(lambda text: ToolDelta("c", text)), st.just("show")
)
# What happens to a round trip.
FATES = st.sampled_from(["none", "written", "reply lost", "never sent", "tail lost", "all lost"])


def appended(cursor: str = "5-0") -> Appended:
    return Appended(cursor, None)


def test_neighbouring_deltas_are_one_event_until_they_are_taken() -> None:
    journal = Journal(new_ref(), 1)
    for body in (START, TextDelta("a"), TextDelta("b"), ReasoningDelta("r"), TextDelta("c")):
        journal.record(body)
    assert [(entry.seq, entry.payload) for entry in journal.take().entries[1:]] == [(2, "ab"), (3, "r"), (4, "c")]
    journal.record(TextDelta("d"))
    assert [entry.payload for entry in journal.take().entries[-2:]] == ["c", "d"]


def test_a_view_stands_between_the_deltas_it_was_shown_between() -> None:
    journal = Journal(new_ref(), 1)
    journal.record(START)
    journal.record(TextDelta("a\n"))
    journal.show(0, "<p>a</p>", sealed=False, length=2)
    journal.record(TextDelta("b"))
    assert [(entry.kind, entry.seq) for entry in journal.take().entries] == [
        (Kind.START, 1), (Kind.TEXT, 2), (Kind.BLOCK, 2), (Kind.TEXT, 3),
    ]  # fmt: skip


def test_a_batch_without_answer_is_taken_again_with_what_came_since() -> None:
    journal = Journal(new_ref(), 1)
    journal.record(START)
    first = journal.take()
    journal.settle(LogUnavailable("away"))
    journal.record(TextDelta("a"))
    second = journal.take()
    assert second.last_seq == first.last_seq == 0
    assert second.entries[:1] == first.entries


def test_views_behind_the_last_event_that_is_left_are_written_again() -> None:
    journal = Journal(new_ref(), 1)
    journal.record(START)
    journal.record(TextDelta("a"))
    journal.show(0, "<p>a</p>", sealed=True, length=1)
    journal.take()
    journal.settle(Appended("1-0", None))
    journal.record(TextDelta("b"))
    journal.take()
    journal.settle(LogLost(2))
    assert [entry.kind for entry in journal.take().entries] == [Kind.BLOCK, Kind.TEXT]


def test_a_fenced_journal_stays_fenced() -> None:
    journal = Journal(new_ref(), 1)
    journal.record(START)
    journal.take()
    journal.settle(Fenced("newer"))
    assert journal.fenced
    assert not journal.settled


def test_events_carry_the_time_of_the_batch_that_wrote_them() -> None:
    journal = Journal(new_ref(), 1)
    for at, body in ((1_000, START), (2_000, TextDelta("a")), (3_000, TextDelta("b"))):
        journal.record(body)
        journal.take()
        journal.settle(appended(f"{at}-0"))
    said = events_of("\n".join(journal.lines()))
    assert [(event.seq, event.at) for event in said] == [(1, 1_000), (2, 2_000), (3, 3_000)]


@given(says=st.lists(st.tuples(SAYS, FATES), max_size=25))
def test_whatever_happens_to_round_trips_the_log_ends_as_the_journal_said(says: list[tuple[object, str]]) -> None:
    asyncio.run(_live_through(says))


async def _live_through(says: list[tuple[object, str]]) -> None:
    ticks = itertools.count(1)
    log, ref = MemoryLog(lambda: next(ticks)), new_ref()
    journal = Journal(ref, (await log.claim(ref, 0)).attempt)
    journal.record(START)
    said: list[object] = [START]
    shown = 0
    for say, fate in says:
        if say == "show":
            journal.show(0, f"<p>{shown}</p>", sealed=False, length=shown)
            shown += 1
        else:
            journal.record(say)  # type: ignore[arg-type]
            said.append(say)
        await _round_trip(log, journal, fate)
    while not journal.settled:
        await _round_trip(log, journal, "written")
    snapshot = (await log.snapshot(ref.conversation, [ref])).generations[ref.number]
    assert snapshot.seq == journal.seq
    assert snapshot.text == "".join(body.text for body in said if isinstance(body, TextDelta))
    assert snapshot.reasoning == "".join(body.text for body in said if isinstance(body, ReasoningDelta))
    assert "".join(tool.arguments for tool in snapshot.tools) == "".join(
        body.arguments for body in said if isinstance(body, ToolDelta)
    )
    assert [block.html for block in snapshot.blocks] == [f"<p>{shown - 1}</p>"] * bool(shown)
    assert snapshot == await folded(log, ref)
    journal.record(Done("stop", "0" * 64, 0))
    while not journal.settled:
        await _round_trip(log, journal, "written")
    assert log._metas[ref].ended
    assert [event.seq for event in events_of("\n".join(journal.lines()))] == list(range(1, journal.seq + 1))


async def _round_trip(log: MemoryLog, journal: Journal, fate: str) -> None:
    if fate == "none":
        return
    if fate == "all lost":
        log._metas.pop(journal.ref, None)
        log._logs.pop(journal.ref.conversation, None)
    if fate == "tail lost":
        _lose_tail(log, journal)
    batch = journal.take()
    if fate == "never sent":
        journal.settle(LogUnavailable("away"))
        return
    (answer,) = await log.append([batch])
    journal.settle(LogUnavailable("reply lost") if fate == "reply lost" else answer)


def _lose_tail(log: MemoryLog, journal: Journal) -> None:
    """Take the newest batch away again, as a restart with an old append-only file would."""
    meta = log._metas.get(journal.ref)
    entries = log._logs.get(journal.ref.conversation, [])
    if meta is None or meta.seq == 0:
        return
    kept = [logged for logged in entries if logged.entry.seq < meta.seq]
    attempt, cancel, lease = meta.attempt, meta.cancel, meta.lease
    log._logs[journal.ref.conversation] = kept
    meta.forget()
    for logged in kept:
        meta.keep(logged.entry)
    meta.attempt, meta.cancel, meta.lease = attempt, cancel, lease


def test_body_of_gives_back_what_was_recorded() -> None:
    journal = Journal(new_ref(), 1)
    bodies = [Start("m", "p", {"a": 1}), ToolDelta("c", "{", "look"), BlockView("", 0, 0, "", sealed=True, length=0)]
    for body in bodies[:2]:
        journal.record(body)  # type: ignore[arg-type]
    assert [body_of(entry) for entry in journal.take().entries] == bodies[:2]
