"""However a service numbers and names the pieces of its calls, what is completed is a call that was made."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.upstream.tools import Alike, ToolCall, ToolCalls


@dataclass(frozen=True)
class Made:
    """A call as the model made it, in the pieces that its service sends; an empty one opens it."""

    name: str
    pieces: tuple[str, ...]

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)


IDS = ("one", "first", "changing", "none", "all the same")
INDEXES = ("right", "zero", "none", "counting", "text")
NAMES = ("first", "each")


@st.composite
def made(draw: st.DrawFn) -> Made:
    given_arguments = draw(st.none() | st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 9), max_size=2))
    text = "" if given_arguments is None else json.dumps(given_arguments)
    cuts = sorted(draw(st.sets(st.integers(1, max(len(text) - 1, 1)), max_size=3))) if text else []
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    opens = [""] if draw(st.booleans()) or not text else []
    return Made(draw(st.sampled_from(["get", "put", "now"])), (*opens, *filter(None, pieces)))


def in_turn(calls: list[Made], *, mixed: bool) -> Iterator[tuple[int, int]]:
    """Say which call's which piece comes when: one call after another, or a piece of each in turn."""
    places = [(call, piece) for call, one in enumerate(calls) for piece in range(len(one.pieces))]
    yield from sorted(places, key=lambda place: place[1]) if mixed else places


def sent(calls: list[Made], ids: str, indexes: str, names: str, *, mixed: bool) -> Iterator[dict[str, Any]]:
    for count, (call, piece) in enumerate(in_turn(calls, mixed=mixed)):
        first = piece == 0
        by_id = {"one": f"c{call}", "changing": f"p{count}", "all the same": "0"}
        by_index = {"right": call, "zero": 0, "counting": count, "text": str(call)}
        yield {
            "id": f"c{call}" if ids == "first" and first else by_id.get(ids),
            "index": by_index.get(indexes),
            "name": calls[call].name if first or names == "each" else None,
            "arguments": calls[call].pieces[piece],
        }


def completed(pieces: Iterator[dict[str, Any]]) -> list[tuple[str, str]]:
    calls = ToolCalls(drifts=True)
    for piece in pieces:
        calls.add(**piece)
    # An answer ends as an error where arguments belong to no call.
    return [] if calls.ownerless else [(done.name, done.arguments) for done in calls.close_all(cut=False)]


@given(st.lists(made(), min_size=1, max_size=3), *map(st.sampled_from, (IDS, INDEXES, NAMES)), st.booleans())
def test_what_is_completed_was_made(calls: list[Made], ids: str, indexes: str, names: str, mixed: bool) -> None:
    wanted = [(call.name, call.arguments or "{}") for call in calls]
    for done in completed(sent(calls, ids, indexes, names, mixed=mixed)):
        assert done in wanted


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize(("ids", "indexes"), [("one", "right"), ("first", "right"), ("one", "text")])
@given(st.lists(made(), min_size=1, max_size=3), st.booleans())
def test_calls_that_are_told_apart_are_completed_as_they_were_made(
    ids: str, indexes: str, names: str, calls: list[Made], mixed: bool
) -> None:
    pieces = list(sent(calls, ids, indexes, "first" if ids == "first" else names, mixed=mixed))
    wanted = [(call.name, call.arguments or "{}") for call in calls]
    assert completed(iter(pieces)) == wanted


@given(st.lists(made(), min_size=1, max_size=3))
def test_ids_that_change_with_each_piece_change_nothing_where_the_index_is_right(calls: list[Made]) -> None:
    wanted = [(call.name, call.arguments or "{}") for call in calls]
    assert completed(sent(calls, "changing", "right", "first", mixed=True)) == wanted


def may_be_one(one: ToolCall, other: ToolCall) -> bool:
    other_id = None not in (one.id, other.id) and one.id != other.id
    other_index = None not in (one.index, other.index) and one.index != other.index
    if one.name == other.name:
        return not (other_id and other_index)
    return one.index is not None and one.index == other.index and not other_id


calls_alike = st.builds(
    ToolCall,
    st.just("c"),
    st.sampled_from([None, "a", "b"]),
    st.sampled_from([None, 0, 1]),
    st.sampled_from([None, "get", "put"]),
)


@given(calls_alike, st.lists(calls_alike, max_size=5))
def test_a_call_is_held_against_all_at_once_as_against_each(call: ToolCall, others: list[ToolCall]) -> None:
    alike = Alike()
    for other in others:
        alike.add(other)
    assert alike.has_part_of(call) == any(may_be_one(call, other) for other in others)
    assert alike.has_other_name_at(call) == any(may_be_one(call, o) for o in others if o.name != call.name)


@pytest.mark.parametrize("arguments", ["", "{}"])
def test_the_end_of_many_calls_costs_no_more_for_each(arguments: str) -> None:
    calls = ToolCalls()
    calls._calls = [ToolCall(f"c{n}", f"c{n}", n, "get", True, [arguments] if arguments else []) for n in range(20_000)]
    began = time.process_time()
    assert len(calls.close_all(cut=False)) == 20_000
    assert time.process_time() - began < 5  # Held against each other they would take minutes.
