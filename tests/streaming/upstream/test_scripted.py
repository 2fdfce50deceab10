"""The scripted upstream: what a script plays, and that closing it works at once and is accounted for."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import UpstreamError
from streaming.upstream.deadlines import Deadlines
from streaming.upstream.ports import (
    ChatRequest,
    Chunk,
    FinishChunk,
    Message,
    Opened,
    ReasoningChunk,
    TextChunk,
    ToolChunk,
    ToolCompleteChunk,
    UsageChunk,
)  # fmt: skip
from streaming.upstream.script import Pause, Say, Script, pieces, split_model
from streaming.upstream.script_file import ScriptError, parse_script
from streaming.upstream.scripted import ScriptedCall, ScriptedUpstream, load_scripts

SCRIPTS = load_scripts()


def ask(model: str, prompt: str = "Hello", **params: object) -> ChatRequest:
    return ChatRequest(model, (Message("system", "Be brief."), Message("user", prompt)), params)


async def outcome(
    call: ScriptedCall, *, until: type[Chunk] = FinishChunk, seen: asyncio.Event | None = None
) -> tuple[list[Chunk], str | None]:
    """Give all chunks, and the code of the error that ended them. Tells `seen` of the first `until`."""
    chunks: list[Chunk] = []
    try:
        async for chunk in call:
            chunks.append(chunk)
            if seen and isinstance(chunk, until):
                seen.set()
    except UpstreamError as exc:
        return chunks, exc.code
    return chunks, None


def text(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


async def reading(call: ScriptedCall, *, until: type[Chunk]) -> asyncio.Task[tuple[list[Chunk], str | None]]:
    """Start to read; come back when the first such chunk was read, and the call pauses again."""
    seen = asyncio.Event()
    task = asyncio.create_task(outcome(call, until=until, seen=seen))
    await seen.wait()
    return task


@given(st.text())
def test_pieces_join_to_the_text_they_were_cut_from(whole: str) -> None:
    assert "".join(pieces(whole)) == whole


def test_pieces_are_about_as_long_as_tokens() -> None:
    prose = "The quick brown fox jumps over the lazy dog, and then it sleeps for a while. " * 10
    assert 3 <= len(prose) / len(pieces(prose)) <= 6


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("demo", ("demo", None)),
        ("demo@50", ("demo", 50.0)),
        ("demo@inf", ("demo", math.inf)),
        ("demo@0", ("demo@0", None)),
        ("user@host", ("user@host", None)),
        ("@5", ("", 5.0)),
    ],
)
def test_a_model_names_a_script_and_maybe_a_rate(model: str, expected: tuple[str, float | None]) -> None:
    assert split_model(model) == expected


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_every_bundled_script_plays_to_exactly_one_end(script) -> None:
    beats = list(script.beats("Hello"))
    ends = [beat for beat in beats if isinstance(beat, FinishChunk) or type(beat).__name__ in ("Report", "Cut")]
    assert ends == beats[-1:] or beats[-1] == Pause(math.inf)


def test_the_demo_takes_between_20_and_40_seconds() -> None:
    script = SCRIPTS["demo"]
    beats = list(script.beats(""))
    pauses = sum(beat.seconds for beat in beats if isinstance(beat, Pause))
    assert 20 <= len(beats) / script.rate + pauses <= 40


def test_every_mistake_of_a_script_is_reported_at_once() -> None:
    source = """
        speed = 3
        [[step]]
        text = ""
        [[step]]
        finish = "perhaps"
        [[step]]
        text = "a"
        reasoning = "b"
        [[step]]
        tool = { call = "1", name = "n", arguments = "[]" }
    """
    with pytest.raises(ScriptError) as caught:
        parse_script("bad", source)
    assert [
        place for place in ("step 1", "step 2", "step 3", "step 4", "speed") if place not in str(caught.value)
    ] == []


@pytest.mark.parametrize(
    "source",
    ["", "title = ", "step = 3", "[[step]]\ntext = 'a'\n[[step]]\ncut = 'end'\n[[step]]\ntext = 'b'", "rate = 0",
     "[[step]]\ntext = 'a'\ntimes = 0", "[[step]]\nusage = { input = 1.5 }", "refuse = { status = '429' }"],
)  # fmt: skip
def test_a_script_that_cannot_be_played_is_refused(source: str) -> None:
    with pytest.raises(ScriptError, match=r"^script bad: "):
        parse_script("bad", source)


async def test_a_call_yields_opened_then_content_then_one_finish() -> None:
    chunks, code = await outcome(ScriptedUpstream(SCRIPTS).call(ask("echo@inf", "Say 12 things.")))
    assert (chunks[0], text(chunks), chunks[-1], code) == (
        Opened(),
        "Say 12 things.",
        FinishChunk("stop", "stop"),
        None,
    )


async def test_a_play_can_tell_its_number() -> None:
    upstream = ScriptedUpstream({"numbered": Script("numbered", "", (Say("{call} {prompt}", echo=True),))})
    first, second = upstream.call(ask("numbered@inf", "{call}")), upstream.call(ask("numbered@inf", "b"))
    # The number is that of the opening: the second is opened first.
    assert [text((await outcome(call))[0]) for call in (second, first)] == ["1 b", "2 {call}"]


async def test_two_plays_of_a_script_are_equal() -> None:
    upstream = ScriptedUpstream(SCRIPTS)
    assert await outcome(upstream.call(ask("tools@inf"))) == await outcome(upstream.call(ask("tools@inf")))


async def test_tool_calls_come_in_pieces_that_join_to_the_whole() -> None:
    chunks, _ = await outcome(ScriptedUpstream(SCRIPTS).call(ask("tools@inf")))
    whole = {chunk.call: chunk.arguments for chunk in chunks if isinstance(chunk, ToolCompleteChunk)}
    joined = dict.fromkeys(whole, "")
    for chunk in chunks:
        if isinstance(chunk, ToolChunk):
            joined[chunk.call] += chunk.arguments
    assert len(whole) == 2
    assert joined == whole


async def test_reasoning_and_usage_are_chunks_of_their_own() -> None:
    chunks, _ = await outcome(ScriptedUpstream(SCRIPTS).call(ask("tools@inf")))
    assert {ReasoningChunk, UsageChunk} <= {type(chunk) for chunk in chunks}


async def test_max_tokens_ends_the_answer_by_length() -> None:
    chunks, _ = await outcome(ScriptedUpstream(SCRIPTS).call(ask("long@inf", max_tokens=7)))
    assert (sum(isinstance(c, TextChunk) for c in chunks), chunks[-1]) == (7, FinishChunk("length", "length"))


@pytest.mark.parametrize(
    ("model", "code", "said"),
    [
        ("error-midway@inf", "upstream_reported", True),
        ("cut-midway@inf", "incomplete_stream", True),
        ("reset-midway@inf", "connection_lost", True),
        ("refuse-429", "rate_limited", False),
        ("refuse-401", "unauthorized", False),
        ("refuse-500", "upstream_error", False),
        ("no-such-script", "model_not_found", False),
    ],
)
async def test_every_way_to_fail_has_its_code_and_keeps_the_text_before(model: str, code: str, said: bool) -> None:
    chunks, got = await outcome(ScriptedUpstream(SCRIPTS).call(ask(model)))
    assert (got, bool(text(chunks))) == (code, said)


async def test_a_refusal_says_when_to_come_back() -> None:
    with pytest.raises(UpstreamError) as caught:
        await anext(aiter(ScriptedUpstream(SCRIPTS).call(ask("refuse-429"))))
    assert caught.value.retry_after_s == 2


@pytest.mark.parametrize(
    ("model", "deadlines", "code"),
    [
        ("silent", Deadlines(first_byte_s=0.02), "first_byte_timeout"),
        ("never-opens", Deadlines(first_byte_s=0.02), "first_byte_timeout"),
        ("stalls@inf", Deadlines(idle_s=0.02), "idle_timeout"),
        ("long@20", Deadlines(total_s=0.1), "total_timeout"),
    ],
)
async def test_deadlines_end_a_call_with_their_own_codes(model: str, deadlines: Deadlines, code: str) -> None:
    _, got = await outcome(ScriptedUpstream(SCRIPTS, deadlines=deadlines).call(ask(model)))
    assert got == code


async def test_the_rate_spaces_the_pieces() -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    await outcome(ScriptedUpstream(SCRIPTS).call(ask("long@200", max_tokens=40)))
    assert loop.time() - started >= 0.2


@pytest.mark.parametrize(("model", "until"), [("stalls@inf", TextChunk), ("silent", Opened), ("slow@0.01", Opened)])
async def test_close_ends_a_paused_call_at_once(model: str, until: type[Chunk]) -> None:
    call = ScriptedUpstream(SCRIPTS).call(ask(model))
    task = await reading(call, until=until)
    assert await call.close()
    async with asyncio.timeout(0.1):
        assert (await task)[1] == "call_closed"


async def test_close_before_the_head_ends_the_call() -> None:
    upstream = ScriptedUpstream(SCRIPTS)
    call = upstream.call(ask("never-opens"))
    task = asyncio.create_task(outcome(call))
    await asyncio.sleep(0)
    assert await call.close()
    assert await task == ([], "call_closed")


async def test_a_call_that_was_closed_before_it_began_never_starts() -> None:
    upstream = ScriptedUpstream(SCRIPTS)
    call = upstream.call(ask("echo"))
    await call.close()
    assert await outcome(call) == ([], "call_closed")
    assert upstream.calls.started == 0


async def test_a_cancelled_reader_counts_as_a_closed_call() -> None:
    upstream = ScriptedUpstream(SCRIPTS)
    task = await reading(upstream.call(ask("silent")), until=Opened)
    task.cancel()
    await asyncio.wait({task})
    assert (upstream.calls.closed, upstream.calls.open) == (1, 0)


async def test_the_account_tells_started_finished_and_closed_apart() -> None:
    upstream = ScriptedUpstream(SCRIPTS)
    await outcome(upstream.call(ask("echo@inf")))
    await outcome(upstream.call(ask("refuse-500")))
    silent = upstream.call(ask("silent"))
    task = await reading(silent, until=Opened)
    before = upstream.calls.open
    await silent.close()
    await silent.close()
    await task
    calls = upstream.calls
    assert (before, calls.started, calls.finished, calls.closed, calls.open) == (1, 3, 2, 1, 0)


async def test_one_paused_call_holds_back_no_other() -> None:
    upstream = ScriptedUpstream(SCRIPTS)
    silent = upstream.call(ask("silent"))
    task = await reading(silent, until=Opened)
    assert (await outcome(upstream.call(ask("demo@inf", max_tokens=50))))[1] is None
    await silent.close()
    await task
