"""One worker process, whole: what a generation leaves in log and database, whatever happens to it."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
from typing import Any

import pytest

from streaming import driver as driver_module
from streaming.errors import LogUnavailable
from streaming.events import event_from_dict
from streaming.lifecycle import State
from streaming.log.memory import MemoryLog
from streaming.log.redis import RedisLog
from streaming.store import Job
from streaming.upstream.ports import (
    FinishChunk,
    Opened,
    ReasoningChunk,
    TextChunk,
    ToolChunk,
    ToolCompleteChunk,
    UsageChunk,
)
from tests.streaming.fakes import HELLO, LedCall, error, until
from tests.streaming.logs import folded
from tests.streaming.process import Clock, Process, serving


async def test_an_answer_is_logged_committed_and_archived(process: Process) -> None:
    process.upstream.script = HELLO
    one, driving = process.start()
    await driving
    snapshot = await process.snapshot(one.ref)
    assert (snapshot.state, snapshot.text, snapshot.finish) == (State.COMPLETED, "Hello world", "stop")
    outcome = process.store.outcomes[one.ref.gen]
    assert (outcome.snapshot.text, outcome.snapshot.seq) == ("Hello world", snapshot.seq)
    archived = [event_from_dict(json.loads(line)) for line in outcome.events.splitlines()]
    assert [event.body for event in archived] == [event.body for event in await process.events(one.ref)]
    done = archived[-1].body
    assert done.text_sha256 == hashlib.sha256(b"Hello world").hexdigest()  # type: ignore[union-attr]


async def test_done_is_written_only_after_the_database_has_it(process: Process) -> None:
    process.upstream.script = HELLO
    one, driving = process.start()
    states: list[State] = []
    meta = lambda: process.log._metas[one.ref].state  # type: ignore[attr-defined]  # noqa: E731
    process.store.before_finish = lambda: states.append(meta())
    await driving
    assert states == [State.RUNNING]
    assert meta() is State.COMPLETED


async def test_blocks_show_the_whole_text_at_the_end(process: Process) -> None:
    process.upstream.script = (Opened(), TextChunk("# Title\n\nSome *te"), TextChunk("xt*"), FinishChunk("stop"))
    one, driving = process.start()
    await driving
    shown = await folded(process.log, one.ref)
    assert shown.shown == len(shown.text)
    assert all(block.sealed for block in shown.blocks)
    assert "<em>text</em>" in shown.blocks[-1].html
    assert process.store.outcomes[one.ref.gen].snapshot.blocks == shown.blocks


async def test_the_first_token_does_not_wait_for_the_next_round(process: Process) -> None:
    one, driving = process.start()
    await process.upstream.called.wait()
    process.runtime._appender._round_at += 3600  # The next one is an hour away.
    (call,) = process.upstream.calls
    call.text("Hello")
    await until(lambda: process.log._metas[one.ref].text == "Hello")  # type: ignore[attr-defined]
    call.say(FinishChunk("stop"))
    await driving


async def test_every_kind_of_chunk_becomes_its_event(process: Process) -> None:
    process.upstream.script = (
        Opened(), ReasoningChunk("hm"), ToolChunk("c1", '{"a"', "look"), ToolCompleteChunk("c1", "look", '{"a":1}'),
        UsageChunk(3, 1), UsageChunk(3, 9), FinishChunk("tool_calls"),
    )  # fmt: skip
    one, driving = process.start()
    await driving
    types = [event.body.type for event in await process.events(one.ref)]
    assert types == ["start", "reasoning_delta", "tool_delta", "tool_complete", "usage", "done"]
    assert (await process.snapshot(one.ref)).usage == {"source": "upstream", "input": 3, "output": 9}


async def test_timings_are_kept_with_the_answer(process: Process) -> None:
    process.upstream.script = HELLO
    one, driving = process.start()
    await driving
    timings = (await process.snapshot(one.ref)).timings
    names = ("queued_at", "started_at", "connected_at", "first_token_at", "last_token_at", "ended_at")
    assert [timings[name] for name in names] == sorted(timings[name] for name in names)
    assert timings["longest_gap_ms"] > 0


@pytest.mark.parametrize("scripts", [
    [[error("overloaded", retryable=True)], list(HELLO)],
    [[Opened(), error("rate_limited", retryable=True)], [error("overloaded", retryable=True)], list(HELLO)],
])  # fmt: skip
async def test_a_retryable_failure_before_the_first_chunk_is_tried_again(
    process: Process, scripts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "RETRY_BASE_S", 0.0)
    process.upstream.scripts = scripts
    one, driving = process.start()
    await driving
    assert (await process.snapshot(one.ref)).text == "Hello world"


@pytest.mark.parametrize(
    ("script", "text", "code", "calls"),
    [
        ([error("unauthorized")], "", "unauthorized", 1),
        ([error("overloaded", retryable=True)], "", "overloaded", 3),
        ([Opened(), TextChunk("Hel"), error("connection_lost", retryable=True)], "Hel", "connection_lost", 1),
        ([Opened(), ToolChunk("c", "{", "f"), error("idle_timeout", retryable=True)], "", "idle_timeout", 1),
    ],
)
async def test_a_failure_ends_with_its_own_code_and_keeps_the_text(
    process: Process, monkeypatch: pytest.MonkeyPatch, script: Any, text: str, code: str, calls: int
) -> None:
    monkeypatch.setattr(driver_module, "RETRY_BASE_S", 0.0)
    process.upstream.script = script
    one, driving = process.start()
    await driving
    snapshot = await process.snapshot(one.ref)
    assert (snapshot.state, snapshot.text) == (State.FAILED, text)
    assert snapshot.error is not None
    assert snapshot.error["code"] == code
    assert len(process.upstream.calls) == calls
    assert process.store.outcomes[one.ref.gen].snapshot.text == text


async def test_a_model_that_cannot_be_prepared_fails_with_the_reason(process: Process) -> None:
    def refuse(_: Job) -> Any:
        raise error("model_unavailable")

    process.runtime._prepare = refuse
    one, driving = process.start()
    await driving
    assert (await process.snapshot(one.ref)).error["code"] == "model_unavailable"  # type: ignore[index]


SECRET = "sk-a-key-that-nobody-may-read"


@pytest.mark.parametrize("where", ["prepare", "call", "first chunk", "later"])
async def test_a_fault_of_ours_ends_the_answer_at_once_and_its_words_are_not_logged(
    process: Process, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    exploding = ValueError(f"Illegal header value b'Bearer {SECRET}'")

    def explode(*_: Any) -> Any:
        raise exploding

    if where == "prepare":
        process.runtime._prepare = explode
    elif where == "call":
        process.upstream.call = explode  # type: ignore[method-assign]
    process.upstream.script = [exploding] if where == "first chunk" else [Opened(), TextChunk("Hel"), exploding]
    one, driving = process.start()
    await driving
    snapshot = await process.snapshot(one.ref)
    assert snapshot.error is not None
    assert (snapshot.state, snapshot.error["code"]) == (State.FAILED, "internal_error")
    assert snapshot.text == ("Hel" if where == "later" else "")
    assert process.store.outcomes[one.ref.gen].snapshot.state is State.FAILED
    assert "internal_error" in caplog.text
    assert "ValueError at " in caplog.text
    assert SECRET not in caplog.text


async def test_a_connection_that_cannot_be_closed_does_not_spoil_a_whole_answer(
    process: Process, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def close(_: Any) -> bool:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(LedCall, "close", close)
    process.upstream.script = HELLO
    one, driving = process.start()
    await driving
    assert (await process.snapshot(one.ref)).state is State.COMPLETED
    assert "RuntimeError at " in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize(("said", "told"), [("Use 1.", "Use 1."), ("", None), ("x" * 5000, "x" * 2000)])
async def test_what_the_service_said_is_kept_beside_our_sentence(process: Process, said: str, told: str | None) -> None:
    process.upstream.script = [error("bad_request", said=said)]
    one, driving = process.start()
    await driving
    for snapshot in (await process.snapshot(one.ref), process.store.outcomes[one.ref.gen].snapshot):
        assert snapshot.error is not None
        assert snapshot.error.get("said") == told


async def test_a_second_task_for_the_same_generation_calls_no_model(process: Process) -> None:
    process.upstream.script = HELLO
    one, driving = process.start()
    await asyncio.gather(driving, process.runtime.drive(one.ref.gen), process.runtime.drive(one.ref.gen))
    assert len(process.upstream.calls) == 1


class FlakyLog(MemoryLog):
    """A log whose round trips fail now and then, before or after writing."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.fates = itertools.cycle(["reply lost", "written", "never sent", "written"])

    async def append(self, batches: Any) -> Any:
        fate = next(self.fates)
        if fate == "never sent":
            raise LogUnavailable("away")
        answers = await super().append(batches)
        if fate == "reply lost":
            raise LogUnavailable("reply lost")
        return answers


async def test_lost_round_trips_lose_and_double_nothing(clock: Clock) -> None:
    process = Process(FlakyLog(clock), clock)
    async with serving(process):
        process.upstream.script = (Opened(), *(TextChunk(f"{i} ") for i in range(20)), FinishChunk("stop"))
        one, driving = process.start()
        await driving
        assert (await process.snapshot(one.ref)).text == "".join(f"{i} " for i in range(20))


async def test_a_database_that_is_away_delays_the_end_but_loses_nothing(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "STORE_RETRY_S", (0.0,))
    failures = iter([OSError("database is locked"), OSError("database is locked")])

    def fail() -> None:
        exc = next(failures, None)
        if exc is not None:
            raise exc

    process.store.before_finish = fail
    process.upstream.script = HELLO
    one, driving = process.start()
    await driving
    assert (await process.snapshot(one.ref)).state is State.COMPLETED


async def test_a_lone_surrogate_of_one_model_harms_no_other(process: Process) -> None:
    process.upstream.script = (Opened(), TextChunk("a\ud83d"), TextChunk("b"), FinishChunk("stop"))
    one, driving = process.start()
    await driving
    assert (await process.snapshot(one.ref)).text == "a\ufffdb"


@pytest.mark.parametrize("name", ["f\ud800", "f\0"])
async def test_a_tools_name_that_no_store_takes_is_made_valid(process: Process, name: str) -> None:
    chunks = (ToolChunk(name, "{}", name), ToolCompleteChunk(name, name, "{}"))
    process.upstream.script = (Opened(), *chunks, FinishChunk("tool_calls"))
    one, driving = process.start()
    await driving
    (tool,) = (await process.snapshot(one.ref)).tools
    assert (tool.call, tool.name) == ("f\ufffd", "f\ufffd")


async def test_twenty_generations_on_a_real_redis_survive_its_restart(free_redis: Any, tmp_path: Any) -> None:
    with free_redis(tmp_path) as server:
        log = RedisLog.connect(server.url)
        process = Process(log, Clock())
        process.clock.offset = 10**12
        async with serving(process):
            started = [process.start() for _ in range(20)]
            await until(lambda: len(process.upstream.calls) == 20)
            for n in range(50):
                for call in process.upstream.calls:
                    call.text(f"{n} ")
                if n == 25:
                    server.kill()
                    server.start()
                await asyncio.sleep(0)
            for call in process.upstream.calls:
                call.say(FinishChunk("stop"))
            await asyncio.gather(*(driving for _, driving in started))
            for one, _ in started:
                assert process.store.outcomes[one.ref.gen].snapshot.text == "".join(f"{n} " for n in range(50))
                snapshot = await process.snapshot(one.ref)
                assert snapshot.state is State.COMPLETED
                assert snapshot.text == process.store.outcomes[one.ref.gen].snapshot.text
        await log.close()
