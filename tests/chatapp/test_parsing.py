"""Bodies of requests: what is accepted, and which code each mistake has."""

from __future__ import annotations

import contextlib
import json
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.errors import Problem
from chatapp.parsing import MAX_PANES, MAX_PROMPT, parse_object, parse_title, parse_turn, title_from

PANE = {"id": "6f1c2b52-3f5e-4f0a-9d0e-0c8f3a3d1a11", "model": "demo", "params": {}}


def body(**changes: Any) -> dict[str, Any]:
    return {"prompt": "Hello", "panes": [PANE], "key": "k1", **changes}


def panes(count: int) -> list[dict[str, Any]]:
    return [{"id": str(uuid.uuid4()), "model": "demo"} for _ in range(count)]


def code_of(data: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(Problem) as caught:
        parse_turn(data)
    return caught.value.code, caught.value.members.get("field", "")


def test_a_whole_turn_is_read() -> None:
    turn = parse_turn(body(panes=[{**PANE, "params": {"temperature": 0, "seed": None}}]))
    assert (turn.prompt, turn.key, turn.panes[0].params) == ("Hello", "k1", {"temperature": 0})


def test_params_may_be_left_out() -> None:
    assert parse_turn(body(panes=panes(1))).panes[0].params == {}


def test_a_turn_without_a_key_is_given_one_of_its_own() -> None:
    assert parse_turn(body(key=None)).key != parse_turn(body(key=None)).key


def test_the_longest_prompt_is_accepted() -> None:
    assert len(parse_turn(body(prompt="x" * MAX_PROMPT)).prompt) == MAX_PROMPT


def test_eight_panes_are_accepted() -> None:
    assert len(parse_turn(body(panes=panes(MAX_PANES))).panes) == MAX_PANES


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"prompt": ""}, "prompt_empty", "prompt"),
        ({"prompt": " \n\t "}, "prompt_empty", "prompt"),
        ({"prompt": "x" * (MAX_PROMPT + 1)}, "prompt_too_long", "prompt"),
        ({"prompt": None}, "invalid_field", "prompt"),
        ({"prompt": 7}, "invalid_field", "prompt"),
        ({"prompt": ["Hello"]}, "invalid_field", "prompt"),
        ({"panes": []}, "panes_count", "panes"),
        ({"panes": panes(9)}, "panes_count", "panes"),
        ({"panes": panes(50)}, "panes_count", "panes"),
        ({"panes": None}, "invalid_field", "panes"),
        ({"panes": {"0": PANE}}, "invalid_field", "panes"),
        ({"panes": ["demo"]}, "invalid_field", "panes[0]"),
        ({"panes": [PANE, PANE]}, "pane_repeated", "panes"),
        ({"panes": [{**PANE, "id": "7"}]}, "invalid_field", "panes[0].id"),
        ({"panes": [{**PANE, "id": 7}]}, "invalid_field", "panes[0].id"),
        ({"panes": [{**PANE, "model": None}]}, "invalid_field", "panes[0].model"),
        ({"panes": [{**PANE, "model": "m" * 201}]}, "unknown_model", "panes[0].model"),
        ({"panes": [{**PANE, "params": []}]}, "invalid_field", "panes[0].params"),
        ({"key": 7}, "invalid_field", "key"),
        ({"key": ""}, "invalid_field", "key"),
        ({"key": "x" * 65}, "invalid_field", "key"),
        ({"key": "ключ"}, "invalid_field", "key"),
    ],
)
def test_a_mistake_has_its_code_and_names_its_field(changes: dict[str, Any], code: str, field: str) -> None:
    assert code_of(body(**changes)) == (code, field)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 2.1),
        ("temperature", "warm"),
        ("temperature", True),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("temperature", 10**400),
        ("top_p", 1.5),
        ("max_tokens", 0),
        ("max_tokens", 1.5),
        ("max_tokens", 10**9),
        ("seed", -1),
        ("seed", 2**31),
        ("stop", "END"),
        ("stop", ["a", "b", "c", "d", "e"]),
        ("stop", [""]),
        ("stop", [7]),
        ("presence_penalty", 3),
        ("frequency_penalty", -3),
        ("reasoning_effort", "extreme"),
        ("reasoning_effort", {}),
        ("logit_bias", {}),
        ("\ud800", 1),
    ],
)
def test_a_parameter_that_is_unknown_or_out_of_range_is_refused(name: str, value: Any) -> None:
    code, field = code_of(body(panes=[{**PANE, "params": {name: value}}]))
    assert (code, field) == ("invalid_param", f"panes[0].params.{name}")


@pytest.mark.parametrize("text", ["{", "nonsense", '{"a":}', "\xff\xfe", "[" * 100_000, '{"n":' + "9" * 5000 + "}"])
def test_what_is_no_json_is_malformed(text: str) -> None:
    with pytest.raises(Problem) as caught:
        parse_object(text.encode("latin-1"))
    assert caught.value.code == "malformed_json"


@pytest.mark.parametrize("text", ["[]", "7", "null", '"text"'])
def test_json_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(Problem) as caught:
        parse_object(text.encode())
    assert caught.value.code == "invalid_field"


def test_an_empty_body_is_an_empty_object() -> None:
    assert parse_object(b"") == {}


def test_surrogate_halves_are_joined_and_lone_ones_and_nul_replaced() -> None:
    sent = parse_object(rb'{"prompt":"\ud83d\ude00 \ud83d \u0000"}')
    assert parse_turn(body(**sent)).prompt == "\U0001f600 \ufffd \ufffd"


def test_stop_texts_are_made_valid() -> None:
    turn = parse_turn(body(panes=[{**PANE, "params": {"stop": ["\ud83d"]}}]))
    assert turn.panes[0].params == {"stop": ["\ufffd"]}


values = st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.lists(st.text(), max_size=2)


@given(
    st.fixed_dictionaries({}, optional={"prompt": values, "key": values, "panes": values}),
    st.fixed_dictionaries({}, optional={"id": values, "model": values, "params": st.dictionaries(st.text(), values)}),
)
def test_any_values_are_read_or_refused_with_a_known_code(top: dict[str, Any], pane: dict[str, Any]) -> None:
    with contextlib.suppress(Problem):
        parse_turn(body(panes=[{**PANE, **pane}], **top) if "panes" not in top else body(**top))


@given(st.text(min_size=1), st.integers(0, 10))
def test_the_fingerprint_does_not_depend_on_the_order_of_members(prompt: str, seed: int) -> None:
    data = body(prompt=f"p{prompt}", panes=[{**PANE, "params": {"temperature": 1, "seed": seed}}])
    turned = json.loads(json.dumps(data, sort_keys=True))
    turned["panes"][0]["params"] = {"seed": seed, "temperature": 1}
    assert parse_turn(data).fingerprint == parse_turn(turned).fingerprint


@pytest.mark.parametrize("changes", [{"prompt": "Hi"}, {"panes": [{**PANE, "model": "other"}]}, {"panes": panes(1)}])
def test_the_fingerprint_tells_other_turns_apart(changes: dict[str, Any]) -> None:
    assert parse_turn(body()).fingerprint != parse_turn(body(**changes)).fingerprint


def test_a_title_is_one_line() -> None:
    assert parse_title({"title": "  Two\n lines "}) == "Two lines"


def test_a_title_that_is_too_long_is_refused() -> None:
    with pytest.raises(Problem):
        parse_title({"title": "x" * 201})


def test_a_conversation_is_named_by_the_beginning_of_its_prompt() -> None:
    assert title_from("Tell me\nabout " + "x" * 200) == "Tell me about " + "x" * 65 + "…"
