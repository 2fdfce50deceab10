"""One real model behind all the dialects that llama.cpp's server speaks."""

from __future__ import annotations

import json

import pytest

from streaming.upstream.dialects import DIALECTS, HttpUpstream
from streaming.upstream.llamacpp import LlamaCppUpstream
from streaming.upstream.ports import (
    AnswerSchema,
    ChatRequest,
    Chunk,
    FinishChunk,
    Message,
    Opened,
    Upstream,
    UsageChunk,
)
from tests.streaming.upstream.calls import text_of

SPOKEN = ("openai_chat", "openai_responses", "anthropic", "llamacpp")
MESSAGES = (Message("system", "You are a helpful assistant."), Message("user", "Name three animals."))
ANSWER = AnswerSchema(
    "animal",
    {
        "type": "object",
        "properties": {"animal": {"enum": ["cat", "dog"]}, "legs": {"type": "integer", "minimum": 0, "maximum": 9}},
        "required": ["animal", "legs"],
        "additionalProperties": False,
    },
)


def upstream(adapter: str, url: str) -> Upstream:
    return LlamaCppUpstream(url) if adapter == "llamacpp" else HttpUpstream(DIALECTS[adapter], f"{url}/v1")


async def chunks_of(adapter: str, url: str, request: ChatRequest) -> list[Chunk]:
    call = upstream(adapter, url).call(request)
    try:
        return [chunk async for chunk in call]
    finally:
        await call.close()


@pytest.mark.parametrize("adapter", SPOKEN)
async def test_a_whole_answer_comes_with_usage_and_finish(llama_url: str, adapter: str) -> None:
    request = ChatRequest("any", MESSAGES, {"temperature": 0, "max_tokens": 12})
    chunks = await chunks_of(adapter, llama_url, request)
    finish, usage = chunks[-1], [chunk for chunk in chunks if isinstance(chunk, UsageChunk)][-1]
    assert isinstance(chunks[0], Opened)
    assert isinstance(finish, FinishChunk)
    # Its Responses calls every end "completed".
    assert finish.finish == ("stop" if adapter == "openai_responses" else "length")
    assert usage.output == 12
    assert usage.input is not None
    assert usage.input > 20


async def test_every_dialect_gives_the_same_answer(llama_url: str) -> None:
    request = ChatRequest("any", MESSAGES, {"temperature": 0, "max_tokens": 12})
    texts = [text_of(await chunks_of(adapter, llama_url, request)) for adapter in SPOKEN]
    assert len({text.strip() for text in texts}) == 1


@pytest.mark.parametrize("adapter", ["openai_chat", "llamacpp"])
async def test_an_answer_keeps_to_its_schema(llama_url: str, adapter: str) -> None:
    request = ChatRequest("any", MESSAGES, {"temperature": 0, "max_tokens": 40}, answer_schema=ANSWER)
    answer = json.loads(text_of(await chunks_of(adapter, llama_url, request)))
    assert (answer["animal"] in ("cat", "dog"), sorted(answer)) == (True, ["animal", "legs"])


@pytest.mark.parametrize("adapter", ["openai_chat", "anthropic", "llamacpp"])
async def test_a_stop_text_ends_the_answer(llama_url: str, adapter: str) -> None:
    request = ChatRequest("any", MESSAGES, {"temperature": 0, "max_tokens": 60, "stop": ["\n"]})
    chunks = await chunks_of(adapter, llama_url, request)
    assert isinstance(chunks[-1], FinishChunk)
    assert (chunks[-1].finish, "\n" in text_of(chunks)) == ("stop", False)


@pytest.mark.parametrize("adapter", SPOKEN)
async def test_an_answer_can_be_closed_in_the_middle(llama_url: str, adapter: str) -> None:
    call = upstream(adapter, llama_url).call(ChatRequest("any", MESSAGES, {"max_tokens": 900}))
    await anext(aiter(call))
    assert await call.close()
