from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.errors import UpstreamError
from streaming.events import FINISHES
from streaming.upstream.answer import Answer
from streaming.upstream.finish import FAILURES, conclude, plain, stated
from streaming.upstream.finish import FINISHES as KNOWN
from streaming.upstream.limits import Limits
from streaming.upstream.openai_chat import OpenAIChat
from streaming.upstream.ports import ToolCompleteChunk, UsageChunk
from streaming.upstream.think import ThinkTags, held_length
from streaming.upstream.tools import ToolCalls, is_object
from streaming.upstream.unicode import Surrogates, valid
from streaming.upstream.usage import UsageTotal, openai_usage

any_text = st.text(st.characters(codec=None) | st.sampled_from(["\ud83c", "\udf0d", "\0", "🌍"]))


def split(text: str, places: list[int]) -> list[str]:
    bounds = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[a:b] for a, b in pairwise(bounds)]


places = st.lists(st.integers(0, 1000), max_size=8)


@settings(deadline=None)
@given(any_text, places)
def test_text_becomes_valid_and_the_same_for_any_cut(text: str, cut_at: list[int]) -> None:
    channel = Surrogates()
    made = "".join(channel.feed(piece) for piece in split(text, cut_at)) + channel.finish()
    made.encode()
    assert made == valid(text)


@settings(deadline=None)
@given(st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0")))
def test_valid_text_stays_as_it_is(text: str) -> None:
    assert valid(text) == text


def test_halves_of_a_pair_are_joined_and_lone_ones_replaced() -> None:
    assert valid("\ud83c\udf0d \ud83c \udf0d \0") == "🌍 \ufffd \ufffd \ufffd"


@settings(deadline=None)
@given(st.text("<think>/ ab\n", max_size=30), places, st.booleans())
def test_think_tags_are_found_for_any_cut(text: str, cut_at: list[int], inside: bool) -> None:
    assert thought(split(text, cut_at), inside) == thought([text], inside)


@settings(deadline=None)
@given(st.text("<think>/ ab\n", max_size=30))
def test_without_a_tag_at_the_start_nothing_is_taken_away(text: str) -> None:
    if not text.lstrip().startswith(("<think>", "</think>")):
        assert thought([text], inside=False) == ("", text)


def test_no_more_is_held_back_than_may_begin_a_tag() -> None:
    tags = ThinkTags(starts_inside=True)
    assert tags.feed("a < b, 1 </th") == ("a < b, 1 ", "")


@pytest.mark.parametrize(("text", "held"), [("", 0), ("a", 0), ("a<", 1), ("<<", 1), ("</think", 7), ("</thinx", 0)])
def test_the_held_back_end_is_the_longest_that_begins_the_tag(text: str, held: int) -> None:
    assert held_length(text, "</think>") == held


def thought(pieces: list[str], inside: bool) -> tuple[str, str]:
    tags = ThinkTags(starts_inside=inside)
    parts = [*(tags.feed(piece) for piece in pieces), tags.finish()]
    return "".join(reasoning for reasoning, _ in parts), "".join(answer for _, answer in parts)


def test_every_finish_is_one_of_the_protocol() -> None:
    assert set(KNOWN.values()) <= set(FINISHES)


@pytest.mark.parametrize("word", FAILURES)
@pytest.mark.parametrize("write", [str, str.upper, str.title])
def test_a_finish_that_means_failure_is_raised(word: str, write: Callable[[str], str]) -> None:
    with pytest.raises(UpstreamError) as caught:
        conclude(write(word), tool_completed=False, refused=False)
    assert caught.value.code == FAILURES[word]


@pytest.mark.parametrize("word", [*FAILURES, *KNOWN])
def test_every_word_is_written_as_it_is_looked_up(word: str) -> None:
    assert plain(word) == word


@pytest.mark.parametrize("raw", [None, "", "null", "None", "FINISH_REASON_UNSPECIFIED", {}, 0])
def test_what_stands_for_no_word_is_none(raw: object) -> None:
    assert stated(raw) is None


@pytest.mark.parametrize(
    ("raw", "tool_completed", "refused", "finish"),
    [
        ("stop", True, False, "tool_calls"),
        ("stop", False, True, "refusal"),
        ("length", True, False, "length"),
        ("something new", False, False, "unknown"),
        ("Stop", False, False, "stop"),
        ("LENGTH", False, False, "length"),
        ("Content-Filter", False, False, "content_filter"),
        (None, False, False, "unknown"),
        (None, True, False, "tool_calls"),
    ],
)
def test_what_was_seen_tells_more_than_the_word_stop(
    raw: str | None, tool_completed: bool, refused: bool, finish: str
) -> None:
    assert conclude(raw, tool_completed=tool_completed, refused=refused).finish == finish


@pytest.mark.parametrize(
    ("arguments", "whole"),
    [
        ("{}", True),
        (' {"a": 1} ', True),
        ("[]", False),
        ("", False),
        ('{"a": NaN}', False),
        ('{"a"', False),
        ("[" * 5000, False),
    ],
)
def test_arguments_are_whole_if_they_are_an_object(arguments: str, whole: bool) -> None:
    assert is_object(arguments) is whole


@settings(deadline=None)
@given(st.dictionaries(st.text("abc", max_size=3), st.text(max_size=5), max_size=4), places)
def test_arguments_are_joined_whole_for_any_cut(arguments: dict[str, str], cut_at: list[int]) -> None:
    calls = ToolCalls()
    text = json.dumps(arguments)
    calls.add(id="c", index=0, name="f", arguments="")
    for piece in split(text, cut_at):
        calls.add(id=None, index=0, name=None, arguments=piece)
    assert calls.close_all(cut=False) == [ToolCompleteChunk("c", "f", text)]


def test_two_calls_with_one_id_at_two_indexes_stay_two() -> None:
    calls = ToolCalls()
    calls.add(id="0", index=0, name="f", arguments="{}")
    calls.add(id="0", index=1, name="g", arguments="{}")
    assert [(chunk.call, chunk.name) for chunk in calls.close_all(cut=False)] == [("0", "f"), ("0_2", "g")]


def test_a_call_without_arguments_that_was_cut_is_not_complete() -> None:
    calls = ToolCalls()
    calls.add(id="c", index=0, name="f", arguments="")
    assert calls.close_all(cut=True) == []


def test_a_call_whose_name_never_came_is_not_complete() -> None:
    calls = ToolCalls()
    shown = calls.add(id="c", index=0, name=None, arguments="{}")
    assert (shown, calls.close_all(cut=False)) == (None, [])


def test_usage_is_an_overlay_and_never_a_sum() -> None:
    total = UsageTotal()
    total.overlay({"input": 3, "output": 1, "cached": 2})
    first = total.first()
    total.overlay({"input": 3, "output": 2, "cached": None})
    assert (first, total.last()) == (UsageChunk(3, 1, 2), UsageChunk(3, 2, 2))


def test_usage_that_was_given_is_not_given_again() -> None:
    total = UsageTotal()
    total.overlay({"input": 0})
    assert (total.first(), total.first(), total.last()) == (UsageChunk(input=0), None, None)


def test_reasoning_beside_the_completion_is_added_to_it() -> None:
    raw = {
        "prompt_tokens": 2,
        "completion_tokens": 3,
        "total_tokens": 9,
        "completion_tokens_details": {"reasoning_tokens": 4},
    }
    assert openai_usage(raw)["output"] == 7


def test_nonsense_in_usage_is_no_count() -> None:
    assert openai_usage(
        {"prompt_tokens": "many", "completion_tokens": True, "prompt_tokens_details": None}
    ) == dict.fromkeys(("input", "output", "cached", "reasoning"))


@pytest.mark.parametrize("beside", [{"delta": {}}, {"delta": {"content": "a"}, "text": "a"}, {"status": "going on"}])
def test_no_event_costs_a_look_at_all_that_was_said(beside: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    monkeypatch.setattr(Answer, "said", property(lambda answer: looks.append("look") or answer._said.getvalue()))
    dialect = OpenAIChat(Limits())
    for _ in range(1_000):
        for choice in ({"delta": {"content": "a"}}, beside):
            event = {"choices": [choice]} if "delta" in choice else choice
            dialect.feed(f"data: {json.dumps(event)}\n\n".encode())
    assert looks == []
    assert dialect.answer.said == "a" * (2_000 if beside.get("text") else 1_000)


@given(st.text(max_size=30), st.text(max_size=30))
def test_what_was_said_last_is_known(said: str, text: str) -> None:
    answer = Answer()
    answer.text(said)
    assert answer.ends_with(text) == said.endswith(text)
    answer.text("more")
    assert answer.said == said + "more"
