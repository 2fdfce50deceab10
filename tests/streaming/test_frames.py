"""Frames as bytes on three transports, and what a browser may send."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import ProtocolError
from streaming.frames import as_ndjson, as_sse, cursor_key, events_frame, parse_ack, parse_cursor, snapshot_frame


def test_events_are_spliced_as_they_were_encoded() -> None:
    frame = events_frame("5-1", ['{"a":1}', '{"b":"\u2028"}'])
    assert json.loads(frame) == {"type": "events", "cursor": "5-1", "events": [{"a": 1}, {"b": "\u2028"}]}


@given(text=st.text())
def test_a_frame_is_one_line_whatever_it_carries(text: str) -> None:
    text = text.encode("utf-8", "ignore").decode()
    frame = snapshot_frame("5-1", [{"text": text}])
    assert as_ndjson(frame).count(b"\n") == 1
    head, data, empty, end = as_sse(frame, "5-1").split(b"\n")
    assert (head, empty, end) == (b"id: 5-1", b"", b"")
    assert json.loads(data.removeprefix(b"data: "))["generations"][0]["text"] == text


@pytest.mark.parametrize("value", ["", "5", "5-", "-1", "a-b", "5-1-2", "5-1\n", "٥-١", "9" * 21 + "-0"])
def test_what_is_no_cursor_is_refused(value: str) -> None:
    with pytest.raises(ProtocolError):
        parse_cursor(value)


def test_cursors_are_ordered_as_numbers() -> None:
    assert cursor_key("10-2") > cursor_key("9-10") > cursor_key("9-9")


@pytest.mark.parametrize(
    "text", ["", "[]", "1", "{}", '{"type":"ack"}', '{"type":"ack","cursor":5}', '{"type":"x","cursor":"5-1"}']
)
def test_anything_but_an_acknowledgement_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError):
        parse_ack(text)


def test_an_acknowledgement_gives_its_cursor() -> None:
    assert parse_ack('{"type":"ack","cursor":"5-1"}') == "5-1"
