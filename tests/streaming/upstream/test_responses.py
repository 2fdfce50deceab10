"""A response says everything up to four times. Whatever of that comes, it is told once, whole, or as an error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.upstream.limits import Limits
from streaming.upstream.responses import Responses
from tests.streaming.upstream.recorded import Outcome, play

Json = dict[str, Any]
ARGUMENTS = '{"city": "Paris"}'


def event(kind: str, **members: Any) -> Json:
    return {"type": f"response.{kind}", **members}


CREATED = event("created", response={"id": "resp_1", "status": "in_progress", "output": []})
GAP = "hole_in_answer"


def message(*texts: str, refusal: str = "") -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {
        "type": "message", "id": "msg_1", "role": "assistant",
        "content": [*content, *([{"type": "refusal", "refusal": refusal}] if refusal else [])],
    }  # fmt: skip


def reasoning(*summary: str, content: tuple[str, ...] = ()) -> Json:
    return {
        "type": "reasoning", "id": "rs_1",
        "summary": [{"type": "summary_text", "text": text} for text in summary],
        "content": [{"type": "reasoning_text", "text": text} for text in content],
    }  # fmt: skip


def call(arguments: str = ARGUMENTS, name: str = "get_weather", number: int = 1) -> Json:
    ids = {"id": f"fc_{number}", "call_id": f"call_{number}"}
    return {"type": "function_call", **ids, "name": name, "arguments": arguments}


def text(delta: str, item: int = 0, part: int = 0) -> Json:
    return event("output_text.delta", output_index=item, content_index=part, delta=delta)


def added(item: Json, index: int = 0) -> Json:
    return event("output_item.added", output_index=index, item=item)


def done(item: Json, index: int = 0) -> Json:
    return event("output_item.done", output_index=index, item=item)


def completed(*output: Json, **members: Any) -> Json:
    return event("completed", response={"id": "resp_1", "status": "completed", "output": list(output), **members})


def read(*events: Json) -> Outcome:
    return play(Responses(Limits()), [b"data: " + json.dumps(one).encode() + b"\n\n" for one in events])


def numbered(events: Iterable[Json]) -> list[Json]:
    return [{**one, "sequence_number": number} for number, one in enumerate(events)]


def summed_up(outcome: Outcome) -> tuple[Any, ...]:
    tools = [(tool["name"], tool["arguments"], tool["complete"]) for tool in outcome.tools]
    return outcome.text, outcome.reasoning, tools, outcome.finish, outcome.error


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([completed(message("Hello"))], "Hello"),
        ([done(message("Hello")), completed()], "Hello"),
        ([done(message("Hello")), completed(message("Hello"))], "Hello"),
        ([event("output_text.done", text="Hello"), completed()], "Hello"),
        ([event("content_part.done", part={"type": "output_text", "text": "Hello"}), completed()], "Hello"),
        ([event("content_part.added", part={"type": "output_text", "text": "Hello"}), completed()], "Hello"),
        ([completed(message("Hel", "lo"))], "Hello"),
        ([completed({"role": "assistant", "content": "Hello"})], "Hello"),
        ([completed({"type": "message", "content": [{"text": "Hello"}]})], "Hello"),
        ([completed(output_text="Hello")], "Hello"),
        ([text("Hello"), completed()], "Hello"),
        ([text("Hel"), event("output_text.done", output_index=0, content_index=0, text="Hello"), completed()], "Hello"),
        ([text("Hel"), done(message("Hello")), completed(message("Hello"))], "Hello"),
        ([text("Hel"), completed(message("Hello"))], "Hello"),
        ([text("Hel"), completed(message("Hel", "lo"))], "Hello"),
        ([text("A", 1), completed(message("A"))], "A"),
        ([text("A"), text("B", 2), completed(message("A"), reasoning(), message("B"))], "AB"),
        ([text("A"), completed(message("A"), message("B"))], "AB"),
        # Items that are numbered otherwise in each form, and two items that say the same.
        ([text("A"), done(message("A"), 1), completed(message("A"))], "A"),
        ([text("A", 2), event("output_text.done", text="A"), done(message("A"), 1), completed(message("A"))], "A"),
        ([done(message("A")), done(message("A"), 1), completed(message("A"), message("A"))], "AA"),
        ([done(message("A")), done(message("A"), 1), completed()], "AA"),
        ([text(" A\n"), done(message("A")), completed(message("A"))], " A\n"),
        ([event("queued", response={"status": "completed"}), text("A"), completed()], "A"),
        ([event("code_interpreter_call_code.delta", delta="1+1"), text("A"), completed()], "A"),
        ([text("A"), event("done", response={"status": "completed"})], "A"),
        ([event("output_text.delta", delta="A"), event("output_text.done", text="AB"), completed(message("AB"))], "AB"),
    ],
)
def test_text_is_told_once_wherever_it_stands(events: list[Json], told: str) -> None:
    assert summed_up(read(CREATED, *events)) == (told, "", [], "stop", None)


@pytest.mark.parametrize("whole", [message("Hello", "!"), reasoning("Hm"), call()])
def test_an_item_said_in_every_form_is_told_once(whole: Json) -> None:
    events = [added(whole), done(whole), done(whole), completed(whole)]
    alone = summed_up(read(CREATED, completed(whole)))
    assert summed_up(read(CREATED, *events)) == alone
    assert alone != summed_up(read(CREATED, completed()))


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([completed(reasoning("Hm"), message("A"))], "Hm"),
        ([completed(reasoning(content=("Hm",)), message("A"))], "Hm"),
        ([done(reasoning("Hm", "m")), text("A", 1), completed()], "Hmm"),
        ([event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="H"),
          event("reasoning_summary_text.done", output_index=0, summary_index=0, text="Hm"),
          event("reasoning_summary_part.done", output_index=0, summary_index=0,
                part={"type": "summary_text", "text": "Hm"}),
          done(reasoning("Hm")), text("A", 1), completed(reasoning("Hm"), message("A"))], "Hm"),
        # In both forms, the one that came is the one that is told.
        ([event("reasoning_text.delta", output_index=0, content_index=0, delta="Hm"),
          done(reasoning("In short", content=("Hm",))), text("A", 1), completed()], "Hm"),
    ],
)  # fmt: skip
def test_reasoning_is_told_once_wherever_it_stands(events: list[Json], told: str) -> None:
    assert summed_up(read(CREATED, *events)) == ("A", told, [], "stop", None)


@pytest.mark.parametrize(
    ("events", "finish"),
    [
        ([completed(message(refusal="No."))], "refusal"),
        ([done(message(refusal="No.")), completed()], "refusal"),
        ([event("refusal.done", refusal="No."), completed()], "refusal"),
        ([event("refusal.delta", delta="N"), completed(message(refusal="No."))], "refusal"),
        ([event("content_part.done", part={"type": "refusal", "refusal": "No."}), completed()], "refusal"),
        ([completed(message("N", refusal="o."))], "stop"),
    ],
)
def test_a_refusal_is_text_that_has_a_finish_of_its_own(events: list[Json], finish: str) -> None:
    assert summed_up(read(CREATED, *events)) == ("No.", "", [], finish, None)


@pytest.mark.parametrize(
    "events",
    [
        [completed(call())],
        [done(call()), completed()],
        [added(call("")), done(call()), completed()],
        [added(call("")), event("function_call_arguments.done", output_index=0, arguments=ARGUMENTS), completed()],
        [added(call("")), event("function_call_arguments.delta", output_index=0, delta=ARGUMENTS[:5]), done(call()),
         completed(call())],
        [added(call("")), event("function_call_arguments.delta", output_index=0, delta=ARGUMENTS[:5]),
         completed(call())],
        [event("function_call_arguments.delta", output_index=0, delta=ARGUMENTS), done(call()), completed(call())],
        [added(call("", name="")), done(call()), completed()],
    ],
)  # fmt: skip
def test_a_call_is_told_once_wherever_it_stands(events: list[Json]) -> None:
    wanted = ("", "", [("get_weather", ARGUMENTS, True)], "tool_calls", None)
    assert summed_up(read(CREATED, *events)) == wanted


def test_arguments_that_a_gateway_wrote_anew_are_the_same_arguments() -> None:
    again = json.dumps(json.loads(ARGUMENTS), separators=(",", ":"))
    pieces = event("function_call_arguments.delta", output_index=0, delta=ARGUMENTS)
    outcome = read(CREATED, added(call("")), pieces, done(call(again)), completed(call(again)))
    assert (outcome.tools[0]["arguments"], outcome.error) == (ARGUMENTS, None)


def test_the_input_of_a_custom_tool_is_told_once() -> None:
    item = {"type": "custom_tool_call", "call_id": "c", "name": "run", "input": 'say "hi"'}
    piece = event("custom_tool_call_input.delta", output_index=0, delta='say "')
    outcome = read(CREATED, added({**item, "input": ""}), piece, done(item), completed(item))
    assert json.loads(outcome.tools[0]["arguments"]) == {"input": 'say "hi"'}


@pytest.mark.parametrize(
    "events",
    [
        [text("Hexlo"), completed(message("Hello"))],
        [text("HelloHello"), completed(message("Hello"))],
        [text("Hlo"), event("output_text.done", output_index=0, content_index=0, text="Hello"), completed()],
        [text("lo"), done(message("Hello")), completed()],
        # The rest of the first message would stand behind the second one.
        [text("A"), text("C", 1), completed(message("AB"), message("C"))],
        [text("A"), text("C", 1), done(message("AB"), 0), completed()],
        [added(call("")), event("function_call_arguments.delta", output_index=0, delta='{"a":1}'), completed(call())],
        [added(call("")), done(call(name="rm")), completed()],
        [added(call("")), completed()],
        [event("function_call_arguments.delta", output_index=0, delta=ARGUMENTS), completed()],
        # Nothing but what nobody knows how to read.
        [event("new_text.delta", delta="Hello"), completed()],
        [completed({"type": "new_item", "content": [{"type": "output_text", "text": "Hello"}]})],
    ],
)
def test_what_does_not_fit_what_came_is_never_completed(events: list[Json]) -> None:
    outcome = read(CREATED, *events)
    assert (outcome.error, outcome.finish, any(tool["complete"] for tool in outcome.tools)) == (GAP, None, False)


@pytest.mark.parametrize(
    "events",
    [
        [text("A")],
        [added(call(""))],
        [added(call("")), event("function_call_arguments.delta", output_index=0, delta="{}")],
        [done(call())],
    ],
)
def test_done_in_brackets_ends_no_response(events: list[Json]) -> None:
    wire = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in [CREATED, *events])
    outcome = play(Responses(Limits()), [wire + b"data: [DONE]\n\n"])
    assert (outcome.error, any(tool["complete"] for tool in outcome.tools)) == ("incomplete_stream", False)


def test_a_failed_response_keeps_what_came_and_says_why() -> None:
    failed = event("failed", response={"status": "failed", "error": {"code": "server_error", "message": "boom"}})
    assert summed_up(read(CREATED, text("A"), failed)) == ("A", "", [], None, "upstream_reported")


def test_a_response_that_was_cut_tells_the_rest_and_the_reason() -> None:
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [message("AB")]}
    assert summed_up(read(CREATED, text("A"), event("incomplete", response=cut))) == ("AB", "", [], "length", None)


def test_a_call_that_a_limit_cut_is_not_complete() -> None:
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    outcome = read(CREATED, added(call("")), event("incomplete", response=cut))
    assert (outcome.finish, outcome.tools[0]["complete"]) == ("length", False)


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_response_that_goes_on_is_no_answer(status: str) -> None:
    body = json.dumps({"object": "response", "id": "resp_1", "status": status, "output": []}).encode()
    dialect = Responses(Limits())
    assert (play(dialect, [body]).error, dialect.runs, dialect.response) == ("incomplete_stream", True, "resp_1")


@pytest.mark.parametrize(
    "events",
    [
        [event("completed", response=None)],
        [added({}), event("output_item.added", output_index=0, item=None), completed()],
        [event("output_item.done", output_index=0, item=None), completed()],
        [event("output_item.done", output_index=0, item={"type": "message", "content": None}), completed()],
        [event("output_item.done", output_index=0, item={"type": "reasoning", "summary": None, "content": None}),
         completed()],
        [event("content_part.done", part=None), event("output_text.done", text=None), text(None), completed()],  # type: ignore[arg-type]
        [event("completed", response={"status": None, "output": None, "usage": None, "error": None})],
        [added({**call(""), "arguments": None}), done({**call(""), "arguments": None}), completed()],
        [{"type": None}, completed()],
    ],
)  # fmt: skip
def test_null_means_absent(events: list[Json]) -> None:
    outcome = read(CREATED, text("A", 5), *events)
    assert (outcome.text, outcome.error) == ("A", None)


# Numbers that jump.


def test_text_behind_a_gap_is_completed_from_the_final_event() -> None:
    events = numbered([CREATED, text("one "), text("two "), completed(message("one two "))])
    assert summed_up(read(events[0], events[1], events[3])) == ("one two ", "", [], "stop", None)


def test_a_gap_at_the_end_of_which_nothing_tells_is_no_whole_answer() -> None:
    events = numbered([CREATED, text("one "), text("two "), completed()])
    assert read(events[0], events[1], events[3]).error == GAP


def test_a_gap_in_the_middle_is_no_whole_answer() -> None:
    events = numbered([CREATED, text("one "), text("two "), text("three"), completed()])
    assert read(events[0], events[1], events[3], events[4]).error == GAP


@pytest.mark.parametrize(
    "events",
    [
        [{**CREATED, "sequence_number": 7}, {**text("A"), "sequence_number": 8}, {**completed(), "sequence_number": 9}],
        [{**one, "sequence_number": 0} for one in (CREATED, text("A"), text("B"), completed(message("AB")))],
        # What came at an open item's end settles it.
        [one for one in numbered([CREATED, added(message()), text("A"), text("B"), done(message("AB")), completed()])
         if one["sequence_number"] != 3],
        # A gateway that lets through some events only.
        [one for one in numbered([CREATED, event("in_progress", response={}), added(message()), text("A"),
                                  done(message("A")), completed()]) if one["sequence_number"] != 1],
    ],
)  # fmt: skip
def test_a_gap_that_final_forms_make_up_for_is_none(events: list[Json]) -> None:
    outcome = read(*events)
    assert (outcome.text in ("A", "AB"), outcome.error) == (True, None)


def test_a_whole_item_that_is_missing_is_noticed() -> None:
    events = numbered(
        [CREATED, added(message()), text("A"), done(message("A")), added(message(), 1), text("B", 1),
         done(message("B"), 1), completed()]
    )  # fmt: skip
    assert read(*events[:4], events[7]).error == GAP


pieces = st.lists(st.text(max_size=6).filter(bool), min_size=1, max_size=5)


@st.composite
def responses(draw: st.DrawFn) -> tuple[list[Json], list[int], Outcome]:
    """A response in all its forms, numbered; the places of its deltas; and what it amounts to."""
    events: list[Json] = [CREATED]
    output: list[Json] = []
    for index, kind in enumerate(draw(st.lists(st.sampled_from(["message", "reasoning", "call"]), max_size=3))):
        said = draw(pieces)
        events += SAID[kind](index, said)
        output.append(ITEMS[kind](index, said))
        events.append(done(output[-1], index))
    events = numbered([*events, completed(*output)])
    return events, [at for at, one in enumerate(events) if one["type"].endswith(".delta")], read(*events)


def arguments_of(said: list[str]) -> str:
    return json.dumps({"x": "".join(said)})


ITEMS: dict[str, Callable[[int, list[str]], Json]] = {
    "message": lambda _, said: message("".join(said)),
    "reasoning": lambda _, said: reasoning("".join(said)),
    "call": lambda index, said: call(arguments_of(said), number=index),
}
SAID: dict[str, Callable[[int, list[str]], list[Json]]] = {
    "message": lambda index, said: [added(message(), index), *(text(piece, index) for piece in said)],
    "reasoning": lambda index, said: [
        added(reasoning(), index),
        *(event("reasoning_summary_text.delta", output_index=index, summary_index=0, delta=piece) for piece in said),
    ],
    "call": lambda index, said: [
        added(call("", number=index), index),
        *(
            event("function_call_arguments.delta", output_index=index, delta=piece)
            for piece in (arguments_of(said)[:7], arguments_of(said)[7:])
        ),
    ],
}


@given(responses(), st.data())
def test_however_many_deltas_are_lost_the_answer_is_whole_or_an_error(
    response: tuple[list[Json], list[int], Outcome], data: st.DataObject
) -> None:
    events, deltas, whole = response
    assert whole.error is None
    lost = data.draw(st.sets(st.sampled_from(deltas))) if deltas else set()
    numbers = data.draw(st.booleans())
    left = [one if numbers else without_number(one) for at, one in enumerate(events) if at not in lost]
    outcome = read(*left)
    if outcome.error is None:
        assert summed_up(outcome) == summed_up(whole)
    else:
        assert (outcome.error, outcome.finish) == (GAP, None)


@given(responses(), st.data())
def test_whatever_is_lost_of_a_numbered_response_it_is_whole_or_an_error(
    response: tuple[list[Json], list[int], Outcome], data: st.DataObject
) -> None:
    events, _, whole = response
    bare = {**events[-1], "response": {"status": "completed"}} if data.draw(st.booleans()) else events[-1]
    lost = data.draw(st.sets(st.integers(1, len(events) - 1)))
    outcome = read(*(one for at, one in enumerate([*events[:-1], bare]) if at not in lost))
    assert outcome.error or summed_up(outcome) == summed_up(whole)


def without_number(one: Json) -> Json:
    return {name: value for name, value in one.items() if name != "sequence_number"}
