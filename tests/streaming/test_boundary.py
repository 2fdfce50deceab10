"""Where lines, sentences and blocks end, whatever the cuts."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.boundary import Boundaries, Boundary, Fence, fence_opened_by, is_blank

_PIECES = [
    "a",
    "Dr. ",
    "e.g. ",
    ". ",
    "! ",
    '."',
    "。",
    "」",
    "1. ",
    "3.14",
    "\n",
    "\r\n",
    "\n\n",
    "```",
    "~~~~",
    " ",
    "…",
]
# Other processes share the machine: a slow example is no fault.
untimed = settings(deadline=None)
texts = st.lists(st.sampled_from(_PIECES), max_size=30).map("".join)


def ends(kind: Boundary, *pieces: str) -> list[int]:
    boundaries = Boundaries(kind)
    return [end for piece in pieces for end in boundaries.feed(piece)]


def split_at(text: str, found: list[int]) -> list[str]:
    places = [0, *found, len(text)]
    return [text[a:b] for a, b in pairwise(places)]


@untimed
@given(text=texts, kind=st.sampled_from(Boundary), cuts=st.lists(st.integers(0, 60), max_size=6))
def test_cuts_change_no_end(text: str, kind: Boundary, cuts: list[int]) -> None:
    places = [0, *sorted(min(place, len(text)) for place in cuts), len(text)]
    pieces = [text[a:b] for a, b in pairwise(places)]
    assert ends(kind, *pieces) == ends(kind, text)


@untimed
@given(text=texts, kind=st.sampled_from(Boundary))
def test_ends_rise_and_lie_in_the_text(text: str, kind: Boundary) -> None:
    found = ends(kind, text)
    assert found == sorted(found)
    assert all(0 < end <= len(text) for end in found)


def test_a_line_ends_behind_its_line_feed() -> None:
    assert split_at("one\ntwo\r\nthr", ends(Boundary.LINE, "one\ntwo\r\nthr")) == ["one\n", "two\r\n", "thr"]


def test_a_sentence_ends_once_white_space_follows() -> None:
    assert ends(Boundary.SENTENCE, "Yes.") == []
    assert ends(Boundary.SENTENCE, "Yes. No! ") == [4, 8]


def test_quotes_and_brackets_belong_to_the_sentence_that_they_close() -> None:
    text = 'He said "go." Then (all of) them went.) Done'
    assert split_at(text, ends(Boundary.SENTENCE, text)) == ['He said "go."', " Then (all of) them went.)", " Done"]


def test_abbreviations_numbers_and_list_numbers_end_no_sentence() -> None:
    assert ends(Boundary.SENTENCE, "1. Dr. Who, e.g. with 3.14 of it") == []


def test_a_number_within_a_line_may_end_a_sentence() -> None:
    assert ends(Boundary.SENTENCE, "It was 1984. Then") == [12]


def test_the_end_of_a_line_ends_a_sentence() -> None:
    assert ends(Boundary.SENTENCE, "A title\nText") == [8]


def test_a_chinese_sentence_needs_no_space() -> None:
    assert split_at("你好。「是。」再见", ends(Boundary.SENTENCE, "你好。「是。」再见")) == [
        "你好。",
        "「是。」",
        "再见",
    ]


def test_a_block_ends_with_its_blank_line() -> None:
    assert split_at("a\nb\n\nc", ends(Boundary.BLOCK, "a\nb\n\nc")) == ["a\nb\n\n", "c"]


def test_a_fence_is_one_block_with_its_blank_lines() -> None:
    text = "```\na\n\nb\n```\nc"
    assert split_at(text, ends(Boundary.BLOCK, text)) == ["```\na\n\nb\n```\n", "c"]


def test_a_fence_of_four_is_not_closed_by_three() -> None:
    assert not Fence("`", 4).closed_by("```")
    assert Fence("`", 4).closed_by("`````  ")


def test_a_fence_is_closed_only_by_its_own_mark_and_nothing_else() -> None:
    fence = Fence("~", 3)
    assert [fence.closed_by(line) for line in ("```", "~~~ x", "    ~~~", "   ~~~")] == [False, False, False, True]


def test_ticks_in_the_words_behind_ticks_open_no_fence() -> None:
    assert fence_opened_by("``` a`b") is None
    assert fence_opened_by("~~~ a`b") == Fence("~", 3)


def test_spaces_and_tabs_make_a_blank_line() -> None:
    assert is_blank(" \t\r\n")
    assert not is_blank(" . ")


def test_a_word_without_end_costs_no_memory() -> None:
    boundaries = Boundaries(Boundary.SENTENCE)
    for _ in range(1000):
        boundaries.feed("word" * 10)
    assert boundaries.feed(". ") == [40_001]
