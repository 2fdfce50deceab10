"""The JSON array, and Amazon's event stream."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.errors import UpstreamError
from streaming.upstream.bedrock import Bedrock
from streaming.upstream.eventstream import EventStreamFramer
from streaming.upstream.framing import ServerSentEvent
from streaming.upstream.gemini import put
from streaming.upstream.json_array import JsonArrayFramer, SseOrArrayFramer
from streaming.upstream.limits import Limits
from tests.streaming.upstream import eventstream

cuts = st.lists(st.integers(0, 10_000), max_size=10)
leaves = st.none() | st.booleans() | st.integers() | st.text('a"\\{}[],é', max_size=6)
objects = st.dictionaries(
    st.text('a"\\{}', max_size=3), st.recursive(leaves, lambda inner: st.lists(inner, max_size=3)), max_size=3
)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(bounds)]


@settings(deadline=None)
@given(st.lists(objects, max_size=4), st.sampled_from([None, 1]), st.booleans(), cuts)
def test_the_objects_of_an_array_are_found_for_any_cut(
    sent: list[dict[str, Any]], indent: int | None, ascii_only: bool, places: list[int]
) -> None:
    framer = JsonArrayFramer(1 << 20)
    wire = json.dumps(sent, indent=indent, ensure_ascii=ascii_only).encode()
    found = [json.loads(event.data) for piece in cut(wire, places) for event in framer.feed(piece)]
    assert found == sent


@pytest.mark.parametrize("at", range(len('[{"a":"\\\\\\""}]')))
def test_an_escape_may_be_cut_in_two(at: int) -> None:
    wire = b'[{"a":"\\\\\\""}]'
    framer = JsonArrayFramer(1 << 20)
    found = [event.data for piece in (wire[:at], wire[at:]) for event in framer.feed(piece)]
    assert [json.loads(data) for data in found] == [{"a": '\\"'}]


def test_an_object_that_is_too_long_is_refused() -> None:
    framer = JsonArrayFramer(100)
    framer.feed(b'{"a' * 30)
    with pytest.raises(UpstreamError) as caught:
        framer.feed(b"a" * 11)
    assert caught.value.code == "line_too_long"


@pytest.mark.parametrize(
    ("wire", "data"),
    [(b'\xef\xbb\xbf [{"a":1}]', '{"a":1}'), (b'{"a":1}', '{"a":1}'), (b'data: {"a":1}\n\n', '{"a":1}')],
)
def test_the_first_character_tells_an_array_from_events(wire: bytes, data: str) -> None:
    framer = SseOrArrayFramer(1 << 20)
    assert [event.data for i in range(len(wire)) for event in framer.feed(wire[i : i + 1])] == [data]


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["messageStart", "metadata"]), objects), max_size=4), cuts)
def test_frames_are_found_for_any_cut(sent: list[tuple[str, dict[str, Any]]], places: list[int]) -> None:
    framer = EventStreamFramer(1 << 20)
    wire = b"".join(eventstream.event(kind, payload) for kind, payload in sent)
    found = [(event.event, json.loads(event.data)) for piece in cut(wire, places) for event in framer.feed(piece)]
    assert found == sent


def test_an_exception_frame_is_an_error_field() -> None:
    wire = eventstream.exception("throttlingException", {"message": "slow down"})
    (event,) = EventStreamFramer(1 << 20).feed(wire)
    assert json.loads(event.error_field or "")["type"] == "throttlingException"


@pytest.mark.parametrize("at", range(0, 90, 3))
def test_a_flipped_bit_anywhere_is_found(at: int) -> None:
    wire = bytearray(eventstream.event("metadata", {"usage": {}, "p": "abc"}))
    wire[at] ^= 4
    with pytest.raises(UpstreamError) as caught:
        list(EventStreamFramer(1 << 20).feed(bytes(wire)))
    assert caught.value.code == "malformed_stream"


def test_a_frame_that_is_too_long_is_refused_before_it_has_come() -> None:
    wire = eventstream.event("metadata", {"p": "x" * 1000})
    with pytest.raises(UpstreamError) as caught:
        list(EventStreamFramer(500).feed(wire[:12]))
    assert caught.value.code == "line_too_long"


def test_headers_of_every_type_are_passed_over() -> None:
    odd = b"".join(
        bytes([1]) + name + bytes([kind]) + value
        for name, kind, value in [
            (b"a", 0, b""), (b"b", 2, b"1"), (b"c", 3, b"12"), (b"d", 4, b"1234"), (b"e", 5, b"12345678"),
            (b"f", 6, b"\x00\x02xy"), (b"g", 8, b"12345678"), (b"h", 9, b"1" * 16),
        ]
    )  # fmt: skip
    wire = eventstream.frame({":event-type": "metadata"}, {}, before=odd)
    assert list(EventStreamFramer(1 << 20).feed(wire)) == [ServerSentEvent("metadata", "{}")]


def test_a_header_of_an_unknown_type_is_malformed_and_no_crash() -> None:
    dialect = Bedrock(Limits())
    dialect.feed(eventstream.frame({":event-type": "metadata"}, {}, before=b"\x01a\x63"))
    with pytest.raises(UpstreamError) as caught:
        list(dialect.finish())
    assert caught.value.code == "malformed_stream"


@pytest.mark.parametrize(
    ("puts", "made"),
    [
        ([("$.a", "Bos"), ("$.a", "ton")], {"a": "Boston"}),
        ([("$.a.b[1].c", 2), ("$.a.b[0]", True)], {"a": {"b": [True, {"c": 2}]}}),
        ([("$['odd name']", None)], {"odd name": None}),
    ],
)
def test_arguments_are_put_at_their_paths(puts: list[tuple[str, Any]], made: dict[str, Any]) -> None:
    target: dict[str, Any] = {}
    for path, value in puts:
        put(target, path, value)
    assert target == made


@pytest.mark.parametrize("path", ["$", "", "$.a[99999999]"])
def test_a_path_that_leads_nowhere_is_malformed(path: str) -> None:
    with pytest.raises(UpstreamError):
        put({}, path, 1)
