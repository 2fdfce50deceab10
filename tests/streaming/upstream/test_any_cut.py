"""However the bytes of an answer arrive, and whatever stands between them that means nothing, it is the same answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.upstream.dialects import DIALECTS
from streaming.upstream.limits import Limits
from tests.streaming.upstream.recorded import Outcome, play
from tests.streaming.upstream.speech import SPEECHES
from tests.streaming.upstream.stubs import ARGUMENTS

ADAPTERS = sorted(SPEECHES)
BY_LINES = [adapter for adapter in ADAPTERS if not SPEECHES[adapter].content_type.endswith("eventstream")]
SSE = [adapter for adapter in BY_LINES if SPEECHES[adapter].content_type == "text/event-stream"]
LINE_ENDS = (b"\n", b"\r\n", b"\r")
COMMENTS = (b": keep-alive\n\n", b":\n", b": OPENROUTER PROCESSING\n\n", b"\n", b"retry: 3000\n", b"id: 7\n\n")


def parts(adapter: str) -> list[bytes]:
    """An answer of text and a tool call, in pieces between which nothing is cut."""
    speech = SPEECHES[adapter]()
    return [
        speech.begin(), speech.text("Grüße "), speech.text("🌍!"), speech.tool(*ARGUMENTS), speech.finish(tool=True),
        speech.end,
    ]  # fmt: skip


def read(adapter: str, *pieces: bytes) -> Outcome:
    return play(DIALECTS[adapter].open(Limits()), pieces)


def wanted(adapter: str) -> Outcome:
    outcome = read(adapter, b"".join(parts(adapter)))
    assert (outcome.text, outcome.finish, outcome.tools[0]["complete"]) == ("Grüße 🌍!", "tool_calls", True)
    return outcome


@pytest.mark.parametrize("adapter", ADAPTERS)
@given(data=st.data())
def test_any_cuts_give_the_same_answer(adapter: str, data: st.DataObject) -> None:
    wire = b"".join(parts(adapter))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(wire) - 1), max_size=30)))
    pieces = [wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
    assert read(adapter, *pieces) == wanted(adapter)


@pytest.mark.parametrize("adapter", SSE)
@given(data=st.data())
def test_comments_between_events_and_line_ends_of_any_kind_change_nothing(adapter: str, data: st.DataObject) -> None:
    line_end = data.draw(st.sampled_from(LINE_ENDS))
    pieces = []
    for part in parts(adapter):
        pieces += [part, *data.draw(st.lists(st.sampled_from(COMMENTS), max_size=3))]
    wire = b"".join(pieces).replace(b"\r\n", b"\n").replace(b"\n", line_end)
    cut = data.draw(st.integers(0, len(wire)))
    assert read(adapter, wire[:cut], wire[cut:]) == wanted(adapter)


def test_blank_lines_between_json_lines_change_nothing() -> None:
    assert read("ollama", b"\n\n".join(parts("ollama"))) == wanted("ollama")
