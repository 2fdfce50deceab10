from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.errors import UpstreamError
from streaming.upstream.framing import NdjsonFramer, ServerSentEvent, SseFramer

LINE_ENDS = ("\n", "\r\n", "\r")


def events(*pieces: bytes, limit: int = 1 << 20) -> list[ServerSentEvent]:
    framer = SseFramer(limit)
    found = [event for piece in pieces for event in framer.feed(piece)]
    return found + framer.finish()


def data_of(*pieces: bytes) -> list[str]:
    return [event.data for event in events(*pieces)]


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(bounds)]


# Text that a line can hold: anything but CR and LF. Lone surrogates are no UTF-8.
line_text = st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=("Cs",)), max_size=20)
names = st.sampled_from(["", "message", "error", "response.completed"])
sent = st.lists(st.tuples(names, st.lists(line_text, min_size=1, max_size=3)), max_size=6)
cuts = st.lists(st.integers(0, 10_000), max_size=12)


def written(sent_events: list[tuple[str, list[str]]], end: str, comment: str | None) -> bytes:
    lines: list[str] = []
    for name, data in sent_events:
        if name:
            lines.append(f"event: {name}")
        for value in data:
            lines.extend([] if comment is None else [f":{comment}"])
            lines.append(f"data: {value}")
        lines.append("")
    return "".join(line + end for line in lines).encode()


@settings(deadline=None)
@given(sent, st.sampled_from(LINE_ENDS), st.none() | line_text, cuts)
def test_events_are_those_that_were_sent_for_any_cut_line_end_and_comment(
    sent_events: list[tuple[str, list[str]]], end: str, comment: str | None, places: list[int]
) -> None:
    wire = written(sent_events, end, comment)
    wanted = [ServerSentEvent(name or "message", "\n".join(data)) for name, data in sent_events]
    assert events(*cut(wire, places)) == wanted


@settings(deadline=None)
@given(st.binary(max_size=200), cuts)
def test_any_bytes_give_the_same_for_any_cut(data: bytes, places: list[int]) -> None:
    assert events(*cut(data, places)) == events(data)


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from([b"data: 1", b"data", b":", b"\r", b"\n", b"\r\n", b"error: x", b" ", b"{", b"\xef\xbb\xbf"])
    ),
    cuts,
)
def test_any_mix_of_what_matters_gives_the_same_for_any_cut(parts: list[bytes], places: list[int]) -> None:
    wire = b"".join(parts)
    assert events(*cut(wire, places)) == events(wire)


WHOLE = [b"data: 1\n\n", b"event: e\ndata: \xc3\xa9\n\n", b"data: \xc3\n\ndata: 2\n\n"]
NOT_WHOLE = [
    b"id: 7\ndata: 3\n\n",
    b"data: 4\n\ndata: ",
    b"data: 5\rdata: 6\n\n",
    b"data: 7\n\r",
    b"event: x\n",
    b"error: y\n",
    b"\n",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(WHOLE + NOT_WHOLE)))
def test_events_that_arrive_whole_are_those_that_arrive_byte_by_byte(pieces: list[bytes]) -> None:
    wire = b"".join(pieces)
    assert events(*pieces) == events(*(wire[i : i + 1] for i in range(len(wire))))


@settings(deadline=None)
@given(st.lists(line_text.filter(str.strip), max_size=6), cuts)
def test_ndjson_lines_are_those_that_were_sent_for_any_cut(lines: list[str], places: list[int]) -> None:
    framer = NdjsonFramer(1 << 20)
    wire = "".join(line + "\n" for line in lines).encode()
    found = [event.data for piece in cut(wire, places) for event in framer.feed(piece)]
    assert found + [event.data for event in framer.finish()] == lines


@pytest.mark.parametrize("cut_at", range(len("data: 你好🌍\n\n".encode())))
def test_a_character_cut_in_two_is_whole_again(cut_at: int) -> None:
    wire = "data: 你好🌍\n\n".encode()
    assert data_of(wire[:cut_at], wire[cut_at:]) == ["你好🌍"]


def test_line_separators_of_unicode_end_no_line() -> None:
    assert data_of("data: a\u2028b\u2029c\u0085d\x0be\n\n".encode()) == ["a\u2028b\u2029c\u0085d\x0be"]


def test_one_byte_order_mark_is_removed_and_only_at_the_start() -> None:
    assert data_of("\ufeffdata: a\n\n\ufeffdata: b\n\ndata: \ufeff\n\n".encode()) == ["a", "\ufeff"]


def test_only_one_space_after_the_colon_is_removed() -> None:
    assert data_of(b"data:  a\n\ndata:b\n\n") == [" a", "b"]


def test_a_field_without_a_colon_has_an_empty_value() -> None:
    assert data_of(b"data\n\n") == [""]


def test_a_block_without_data_dispatches_nothing() -> None:
    assert events(b"event: ping\nid: 1\n: note\n\n") == []


def test_an_event_name_does_not_outlive_its_block() -> None:
    assert [event.event for event in events(b"event: a\n\ndata: 1\n\n")] == ["message"]


def test_the_last_id_stays_with_later_events() -> None:
    assert [event.id for event in events(b"data: 1\n\nid: 7\ndata: 2\n\ndata: 3\n\n")] == [None, "7", "7"]


def test_the_field_error_is_dispatched_though_the_standard_drops_it() -> None:
    assert events(b'error: {"a":1}\n\n') == [ServerSentEvent("message", "", None, '{"a":1}')]


@pytest.mark.parametrize("tail", [b'data: {"a":1}', b'data: {"a":1}\n', b"data: [DONE]", b"data: [DONE] \n"])
def test_a_last_event_without_a_blank_line_is_dispatched_if_whole(tail: bytes) -> None:
    assert len(events(tail)) == 1


@pytest.mark.parametrize("tail", [b'data: {"a":', b"data: [DON", b"dat", b"event: x\n"])
def test_a_last_event_that_is_not_whole_is_dropped(tail: bytes) -> None:
    assert events(tail) == []


def test_a_body_that_is_one_json_document_is_dispatched_whole() -> None:
    assert data_of(b'{"error":\n\n {"data": 1}}') == ['{"error":\n\n {"data": 1}}']


def test_a_json_body_that_breaks_off_is_dropped() -> None:
    assert events(b'{"error":') == []


@pytest.mark.parametrize(
    ("piece", "held"),
    [
        (b": note\n\n", False), (b"\r\n", False), (b": no", False), (b"", False), (b"event: ping\n", False),
        (b"data:\n", False), (b"data:  \ndata:\n", False), (b"data: 1\n\n", False), (b"data: 1\n\n: x", False),
        (b"data: 1", True), (b"data: 1\n", True), (b"data: 1\n\ndata: 2\ndata:\n", True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", [b"", b"data: 0\n\n"])
def test_only_part_of_an_event_that_says_something_is_held_payload(before: bytes, piece: bytes, held: bool) -> None:
    framer = SseFramer(1 << 20)
    framer.feed(before)
    framer.feed(piece)
    assert framer.held_payload is held


def test_the_rest_of_a_comment_is_no_payload() -> None:
    framer = SseFramer(1 << 20)
    framer.feed(b": keep-")
    framer.feed(b"alive")
    assert framer.held_payload is False


@pytest.mark.parametrize(
    "pieces",
    [
        [b"data: " + b"x" * 100],
        [b"x"] * 101,
        [b"data: 1\n\n" + b"x" * 101 + b"\n"],
        [b"data: 1234567890\n"] * 12,
        [b"data: 1\n\n", b"data: " + b"x" * 100 + b"\n\n"],
    ],
    ids=["one piece", "one byte a piece", "behind others", "one event of many lines", "a whole event"],
)
def test_what_is_too_long_is_refused(pieces: list[bytes]) -> None:
    with pytest.raises(UpstreamError) as caught:
        events(*pieces, limit=100)
    assert caught.value.code == "line_too_long"


def test_a_line_that_just_fits_is_taken() -> None:
    assert len(events(b"data: " + b"x" * 94 + b"\n\n", limit=100)) == 1


@pytest.mark.parametrize("feed", [lambda data: [data[i : i + 1] for i in range(len(data))], lambda data: [data]])
def test_time_is_linear_in_the_bytes(feed: Callable[[bytes], list[bytes]]) -> None:
    def seconds(size: int) -> float:
        pieces = feed(b"data: " + b"x" * size + b"\n\n")
        begun = time.process_time()
        events(*pieces, limit=1 << 24)
        return time.process_time() - begun

    seconds(10_000)
    # Quadratic time would be 64 times as much; room for noise on a busy machine.
    assert seconds(400_000) < 24 * max(seconds(50_000), 0.001)
