from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.upstream.estimate import complete_usage, estimate_input, estimate_tokens
from streaming.upstream.ports import Image, Message, UsageChunk


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("The quick brown fox.", 5), ("你好世界", 4), ("ab你", 2), ("\ud800", 1)]
)
def test_text_is_counted_by_its_bytes(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text(), st.text())
def test_more_text_is_never_fewer_tokens(first: str, second: str) -> None:
    assert estimate_tokens(first + second) >= max(estimate_tokens(first), estimate_tokens(second))


def test_messages_count_with_what_stands_around_them_and_their_images() -> None:
    message = Message("user", "What is this?", (Image("image/png", b"x"),))
    assert estimate_input((Message("system", ""), message)) == 10 + 10 + 4 + 1000


@pytest.mark.parametrize(
    ("known", "finished", "source", "usage"),
    [
        (UsageChunk(7, 9, 2, 1), True, "upstream", UsageChunk(7, 9, 2, 1)),
        (UsageChunk(), True, "estimated", UsageChunk(30, 20)),
        (UsageChunk(7), True, "estimated", UsageChunk(7, 20)),
        (UsageChunk(None, 9), True, "estimated", UsageChunk(30, 9)),
        # Said at the beginning of an answer that was then stopped.
        (UsageChunk(7, 1), False, "estimated", UsageChunk(7, 20)),
        (UsageChunk(7, 25), False, "upstream", UsageChunk(7, 25)),
    ],
)
def test_what_the_service_said_stands_where_it_can_be_right(
    known: UsageChunk, finished: bool, source: str, usage: UsageChunk
) -> None:
    assert complete_usage(known, read=30, written=20, finished=finished) == (source, usage)
