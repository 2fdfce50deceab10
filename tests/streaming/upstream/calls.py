"""Calls as a driver makes them, for tests."""

from __future__ import annotations

from streaming.errors import UpstreamError
from streaming.upstream.http import Deadlines, HttpCall, Limits
from streaming.upstream.openai_chat import OpenAIChat
from streaming.upstream.ports import Chunk, Opened, TextChunk

KEY = "sk-test-0123456789abcdefghij"


def chat_call(url: str, *, deadlines: Deadlines | None = None, limits: Limits | None = None) -> HttpCall:
    limits = limits or Limits()
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    return HttpCall(url, headers, b"{}", OpenAIChat(limits), deadlines=deadlines, limits=limits, secrets=(KEY,))


async def run(call: HttpCall) -> tuple[list[Chunk], UpstreamError | None]:
    """Iterate to the end and close; give what came, and the failure."""
    chunks: list[Chunk] = []
    try:
        async for chunk in call:
            chunks.append(chunk)  # noqa: PERF401 (what came before a failure counts)
    except UpstreamError as error:
        return chunks, error
    finally:
        assert await call.close()
    return chunks, None


async def failure(call: HttpCall) -> UpstreamError:
    error = (await run(call))[1]
    assert error is not None
    return error


def text_of(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


async def opened(call: HttpCall) -> HttpCall:
    """Iterate until the response head has arrived."""
    assert isinstance(await anext(call), Opened)
    return call
