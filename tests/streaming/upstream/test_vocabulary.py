"""Token ids out of a stream that leaves some out: all of them, provably, or none."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from streaming.upstream.vocabulary import TokenTrail, Vocabulary

# Every byte, as byte-level tokenizers have, and a few longer pieces with overlapping splits.
PIECES = [bytes([n]) for n in range(256)] + [
    piece.encode() for piece in ("he", "hell", "llo", "lo", " wor", "ld", "家", "👩")
]
VOCABULARY = Vocabulary([*PIECES, "👩".encode()[:3], "家".encode()[:2]])
SIZE = 266
ids_of_text = st.lists(st.integers(0, SIZE - 1), max_size=12)


def stream_of(tokens: list[int]) -> list[tuple[str, list[int], int]]:
    """Send as llama.cpp does: nothing in the middle of a character, and of several ids only the last."""
    sent, held = [], b""
    for count, token in enumerate(tokens, start=1):
        held += VOCABULARY.spell([token]) or b""
        try:
            text = held.decode()
        except UnicodeDecodeError:
            continue
        sent.append((text, [token], count))
        held = b""
    return sent


@given(ids_of_text)
def test_whatever_ids_are_given_spell_the_text_that_came_with_them(tokens: list[int]) -> None:
    trail = TokenTrail(VOCABULARY)
    for text, last, count in stream_of(tokens):
        ids = trail.follow(text, last, count)
        assert not ids or VOCABULARY.spell(ids) == text.encode()


@given(ids_of_text)
def test_ids_that_are_given_are_the_ids_that_were_made(tokens: list[int]) -> None:
    trail = TokenTrail(VOCABULARY)
    given_ids: list[int] = []
    for text, last, count in stream_of(tokens):
        given_ids += trail.follow(text, last, count)
    assert given_ids == tokens[: len(given_ids)]


@given(ids_of_text, ids_of_text)
def test_after_a_doubt_no_ids_follow(before: list[int], after: list[int]) -> None:
    assume(after)
    trail = TokenTrail(VOCABULARY)
    trail.follow("something else", [0], 1)
    assert not any(trail.follow(*sent) for sent in stream_of(before + after))


def test_a_hole_with_one_filling_is_filled() -> None:
    first, second, *_ = "é".encode()
    assert TokenTrail(VOCABULARY).follow("é", [second], 2) == (first, second)


def test_a_hole_with_two_fillings_is_a_doubt() -> None:
    raw = "家".encode()
    space_and_two = Vocabulary([b" ", raw[:2], b" " + raw[:1], raw[1:2], raw[2:]])
    assert TokenTrail(space_and_two).follow(" 家", [4], 3) == ()


def test_without_a_vocabulary_there_are_no_ids() -> None:
    assert TokenTrail(None).follow("a", [97], 1) == ()


def test_an_id_beyond_the_vocabulary_is_a_doubt() -> None:
    assert TokenTrail(VOCABULARY).follow("a", [SIZE], 1) == ()


def test_a_count_that_runs_backwards_is_a_doubt() -> None:
    trail = TokenTrail(VOCABULARY)
    trail.follow("a", [97], 5)
    assert trail.follow("b", [98], 4) == ()


def test_text_that_had_to_be_mended_has_no_ids() -> None:
    assert TokenTrail(VOCABULARY).follow("\0", [0], 1) == ()


def test_a_long_ambiguous_hole_is_given_up_quickly() -> None:
    assert VOCABULARY.only_split(b"he" * 32, 16) is None
    assert VOCABULARY.only_split(b"a" * 1000, 1000) is None
