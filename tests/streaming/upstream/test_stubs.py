"""Every dialect against a service that checks its requests and goes wrong in every documented way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from streaming.errors import UpstreamError
from streaming.upstream.dialects import DIALECTS
from streaming.upstream.faults import FAULTS as CODES
from streaming.upstream.http import Deadlines
from streaming.upstream.limits import Limits
from streaming.upstream.ports import ChatRequest, FinishChunk, Message, ToolCompleteChunk, UsageChunk
from tests.streaming.upstream.calls import run, text_of
from tests.streaming.upstream.recorded import play
from tests.streaming.upstream.speech import CALL, SPEECHES, TOOL, USED
from tests.streaming.upstream.stubs import ARGUMENTS, FAULTS, TINY_CHUNKS, calls_tool, options, stub, whole

README = Path(__file__).parents[3] / "streaming" / "upstream" / "README.md"
ASK = ChatRequest(
    "some-model",
    (Message("system", "Be brief."), Message("user", "Hi"), Message("assistant", "Hello"), Message("user", "Bye")),
    {"temperature": 0.5, "max_tokens": 100},
)
ADAPTERS = sorted(SPEECHES)
TAKES_LONG = {"thousands of tiny chunks", "a line of 10 MB"}


class Row(NamedTuple):
    """What the documentation says of one fault."""

    fault: str
    code: str
    not_in: tuple[str, ...]


def table() -> Iterator[Row]:
    text = README.read_text("utf-8").partition("## How a call may go wrong")[2].partition("\n## ")[0]
    for fault, code, not_in in re.findall(r"^\| (?!what the)(.+?) \| `(\w+)` \| (.*?) ?\|$", text, re.MULTILINE):
        yield Row(fault, code, tuple(filter(None, not_in.split(", "))))


ROWS = list(table())
CASES = [(row, adapter) for row in ROWS for adapter in ADAPTERS if adapter not in row.not_in]


def test_every_dialect_has_a_stub() -> None:
    assert set(DIALECTS) == set(SPEECHES)


def test_every_fault_is_documented_and_every_documented_one_is_played() -> None:
    assert sorted(row.fault for row in ROWS) == sorted(FAULTS)


def test_every_documented_code_and_exception_exists() -> None:
    assert {row.code for row in ROWS} <= {*CODES, "completed"}
    assert {name for row in ROWS for name in row.not_in} <= set(ADAPTERS)


@pytest.mark.parametrize(("row", "adapter"), CASES, ids=lambda value: value if isinstance(value, str) else value.fault)
async def test_a_fault_ends_as_documented(row: Row, adapter: str) -> None:
    async with stub(adapter, FAULTS[row.fault], **options(row.fault)) as service:
        chunks, error = await run(service.upstream.call(ASK))
    assert (error.code if error else "completed") == row.code
    assert isinstance(chunks[-1], FinishChunk) if chunks and not error else error


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_request_is_as_the_service_wants_it_and_its_answer_is_read(adapter: str) -> None:
    async with stub(adapter, whole) as service:
        chunks, _ = await run(service.upstream.call(ASK))
    assert service.mistakes == []
    assert text_of(chunks) == "Hello world"
    assert [chunk for chunk in chunks if isinstance(chunk, UsageChunk)][-1] == UsageChunk(*USED)


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_tool_call_is_read_whole(adapter: str) -> None:
    async with stub(adapter, calls_tool) as service:
        chunks, _ = await run(service.upstream.call(ASK))
    (call,) = [chunk for chunk in chunks if isinstance(chunk, ToolCompleteChunk)]
    assert call == ToolCompleteChunk(CALL, TOOL, "".join(ARGUMENTS))
    assert isinstance(chunks[-1], FinishChunk)
    assert chunks[-1].finish == "tool_calls"


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_tool_call_that_is_cut_at_any_byte_is_never_whole(adapter: str) -> None:
    speech = SPEECHES[adapter]()
    wire = speech.begin() + speech.tool(*ARGUMENTS)
    for at in range(len(wire)):
        outcome = play(DIALECTS[adapter].open(Limits()), [wire[:at]])
        assert outcome.error == "incomplete_stream"
        assert not any(tool["complete"] for tool in outcome.tools)


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_service_s_wish_to_wait_is_heard(adapter: str) -> None:
    async with stub(adapter, FAULTS["status 429 with Retry-After"]) as service:
        _, error = await run(service.upstream.call(ASK))
    assert error is not None
    assert error.retry_after_s == 7


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_thousands_of_tiny_chunks_lose_none(adapter: str) -> None:
    async with stub(adapter, FAULTS["thousands of tiny chunks"]) as service:
        chunks, _ = await run(service.upstream.call(ASK))
    assert text_of(chunks) == "x" * TINY_CHUNKS


@pytest.mark.parametrize("fault", ["an error after some text", "silence after some text", "a connection that breaks"])
@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_text_that_came_before_a_fault_is_kept(adapter: str, fault: str) -> None:
    async with stub(adapter, FAULTS[fault], **options(fault)) as service:
        chunks, _ = await run(service.upstream.call(ASK))
    assert text_of(chunks) == "Hello"


async def test_a_stub_finds_what_is_wrong_with_a_request() -> None:
    async with stub("openai_chat", whole, deadlines=Deadlines()) as service:
        await run(service.upstream.call(ChatRequest("", (), {"stop": []})))
    assert [mistake.partition(":")[0] for mistake in service.mistakes] == ["$.model", "$.messages", "$.stop"]


async def test_a_request_that_cannot_be_expressed_never_reaches_a_service() -> None:
    async with stub("cohere", whole) as service:
        with pytest.raises(UpstreamError):
            service.upstream.call(ChatRequest("m", ASK.messages, {"reasoning_effort": "low"}))
    assert service.mistakes == []
