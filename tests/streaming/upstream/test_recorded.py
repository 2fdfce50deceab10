"""Every recorded stream and every quirk vector, whole and in pieces, against what they are expected to amount to."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import pytest

from streaming.upstream.anthropic import Anthropic
from streaming.upstream.bedrock import Bedrock
from streaming.upstream.bedrock_invoke import BedrockInvoke
from streaming.upstream.cohere import Cohere
from streaming.upstream.dialect import JsonDialect
from streaming.upstream.gemini import Gemini
from streaming.upstream.http import HttpCall
from streaming.upstream.interactions import Interactions
from streaming.upstream.limits import Limits
from streaming.upstream.ollama import Ollama
from streaming.upstream.openai_chat import ACCENTS, Accent, OpenAIChat
from streaming.upstream.responses import Responses
from tests.streaming.upstream.calls import run
from tests.streaming.upstream.recorded import (
    DEVIATIONS,
    MISSING,
    SHARED,
    Case,
    Outcome,
    differences,
    every_byte,
    expected,
    outcomes_differ,
    play,
    quirks,
    random_cuts,
    recordings,
)
from tests.streaming.upstream.server import sends, serving

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason=MISSING)
# How many random cuts each recording is put through. 200 take two minutes; the suite takes a sample.
CUTS = int(os.environ.get("SIDESTREAM_CUTS", "2"))
DIALECTS: dict[str, Callable[[Limits], JsonDialect]] = {
    "openai_chat": OpenAIChat,
    "openai_responses": Responses,
    "anthropic": Anthropic,
    "gemini": Gemini,
    "gemini_json_array": Gemini,
    "interactions": Interactions,
    "ollama": Ollama,
    "cohere": Cohere,
    "bedrock_converse": Bedrock,
    "bedrock_invoke": BedrockInvoke,
}
# Read only by what a model or a service is known for, which its stream cannot say.
ACCENT_OF = {
    "q049": ACCENTS["cumulative"],
    **dict.fromkeys(("q056", "q057", "q059", "q060"), ACCENTS["think_tags"]),
    "q058": ACCENTS["starts_in_reasoning"],
    "q062": ACCENTS["xai"],
    "q081": Accent(repeats_whole_calls=True),
}
NOT_SPOKEN = {case for entry in DEVIATIONS["not_spoken"] for case in entry["cases"]}
RECORDED = [case for case in recordings() if case.id not in NOT_SPOKEN]
QUIRKS = quirks()
# Silence is a matter of time: test_http_deadlines has it.
TIMED = {"q032"}
# A finish reason in mid-stream, which nothing but a broken connection could tell from the last one.
EARLY_FINISH = {"cerebras/vercel__cererebras-structured-output-tools.1.chunks.txt"}
SHORT = sorted((case for case in RECORDED if case.dialect == "openai_chat"), key=lambda case: len(case.wire))[:10]
SHORTEST = [min((c for c in RECORDED if c.dialect == name), key=lambda c: len(c.wire)) for name in DIALECTS if RECORDED]
WITH_TOOLS = [
    min(
        (case for case in RECORDED if case.dialect == name and case.expect.get("tool_calls")), key=lambda c: len(c.wire)
    )
    for name in ("openai_chat", "openai_responses", "anthropic", "gemini", "cohere", "bedrock_converse")
    if RECORDED
]


def maker(case: Case) -> Callable[[], JsonDialect]:
    if case.id in ACCENT_OF:
        return partial(OpenAIChat, Limits(), ACCENT_OF[case.id])
    return partial(DIALECTS[case.dialect], Limits())


def name(case: Case) -> str:
    return case.id


@pytest.mark.parametrize("case", RECORDED, ids=name)
def test_a_recorded_stream_gives_what_is_expected(case: Case) -> None:
    assert differences(play(maker(case)(), [case.wire]), expected(case)) == []


@pytest.mark.parametrize("case", [case for case in QUIRKS if case.id not in TIMED], ids=name)
def test_a_quirk_gives_what_is_expected(case: Case) -> None:
    assert differences(play(maker(case)(), [case.wire]), expected(case)) == []


@pytest.mark.parametrize("case", RECORDED, ids=name)
def test_a_recorded_stream_gives_the_same_for_random_cuts(case: Case) -> None:
    assert outcomes_differ(maker(case), case.wire, (random_cuts(case.wire, seed) for seed in range(CUTS))) == []


@pytest.mark.parametrize("case", [*RECORDED, *QUIRKS], ids=name)
def test_a_stream_gives_the_same_in_one_byte_pieces(case: Case) -> None:
    assert outcomes_differ(maker(case), case.wire, [every_byte(case.wire)]) == []


@pytest.mark.parametrize("case", [*SHORT, *SHORTEST], ids=name)
def test_a_recorded_stream_gives_the_same_for_every_cut_in_two(case: Case) -> None:
    cuts = ([case.wire[:at], case.wire[at:]] for at in range(1, len(case.wire)))
    assert outcomes_differ(maker(case), case.wire, cuts) == []


@pytest.mark.parametrize("case", [case for case in RECORDED if case.id not in EARLY_FINISH], ids=name)
def test_a_recorded_stream_that_breaks_off_half_way_is_complete_only_if_all_its_text_came(case: Case) -> None:
    half, whole = (play(maker(case)(), [case.wire[:size]]) for size in (len(case.wire) // 2, len(case.wire)))
    assert half.error or half.text == whole.text


@pytest.mark.parametrize("case", SHORTEST, ids=name)
async def test_a_recorded_stream_comes_through_http_as_it_comes_without(case: Case) -> None:
    kinds = {"ollama": "application/x-ndjson", "gemini_json_array": "application/json"}
    binary = case.dialect.startswith("bedrock")
    kind = kinds.get(case.dialect, "application/vnd.amazon.eventstream" if binary else "text/event-stream")
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode()
    async with serving(sends(head, *random_cuts(case.wire, 1))) as server:
        chunks, error = await run(HttpCall(server.url, {}, b"{}", maker(case)()))
    outcome = Outcome(error=error and error.code)
    for chunk in chunks:
        outcome.add(chunk)
    assert differences(outcome, expected(case)) == []


@pytest.mark.parametrize("case", WITH_TOOLS, ids=name)
def test_no_tool_call_is_complete_wherever_the_stream_breaks_off(case: Case) -> None:
    cut_off = (play(maker(case)(), [case.wire[:at]]) for at in range(0, len(case.wire), 5))
    assert not any(tool["complete"] for outcome in cut_off if outcome.error for tool in outcome.tools)


@pytest.mark.parametrize(
    "entry", [*DEVIATIONS["deviation"], *DEVIATIONS["not_spoken"]], ids=lambda entry: entry["cases"][0]
)
def test_every_deviation_names_cases_that_exist(entry: dict[str, list[str]]) -> None:
    assert set(entry["cases"]) <= {case.id for case in (*recordings(), *QUIRKS)}


def test_the_token_ids_of_vllm_come_with_their_text() -> None:
    case = next(case for case in QUIRKS if case.id == "q051")
    assert play(maker(case)(), [case.wire]).tokens == [32]


def test_a_response_that_is_joined_to_an_earlier_stream_repeats_nothing() -> None:
    case = next(case for case in QUIRKS if case.id == "q107")
    dialect = Responses(Limits())
    dialect.seen = 7
    dialect.rejoin()
    assert play(dialect, [case.wire]).text == ""
