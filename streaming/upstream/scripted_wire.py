"""A script as the bytes of a Chat Completions response, each with the time to wait before it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, TypeAlias

from streaming.events import dumps
from streaming.upstream.ports import FinishChunk, ReasoningChunk, TextChunk, ToolChunk, ToolCompleteChunk, UsageChunk
from streaming.upstream.script import Beat, Cut, Pause, Rate, Report, Script

HEAD = b"\r\n".join(
    (
        b"HTTP/1.1 200 OK", b"Content-Type: text/event-stream", b"Cache-Control: no-cache",
        b"Transfer-Encoding: chunked", b"", b"",
    )
)  # fmt: skip


class Ending(Enum):
    """How the response ended, after its last bytes. The values are the account's words."""

    FINISHED = "finished"
    REPORTED = "reported"
    CUT = "cut"
    RESET = "reset"


Frame: TypeAlias = tuple[float, bytes | Ending]


def frames(
    script: Script, prompt: str, *, call: int, model: str, rate: float | None = None, max_pieces: int | None = None
) -> Iterator[Frame]:
    """Give the seconds to wait and then the bytes to write, head first, until an Ending or for ever."""
    envelope = {"id": f"chatcmpl-{call}", "object": "chat.completion.chunk", "created": 0, "model": model}
    yield script.open_after_s, HEAD
    gap, wait = 1 / (rate or script.rate), 0.0
    ending = Ending.FINISHED
    tools: dict[str, int] = {}
    for beat in script.beats(prompt, max_pieces, call=call):
        match beat:
            case Pause(seconds=seconds):
                wait += seconds
            case Rate(per_second=per_second):
                gap = 1 / (rate or per_second)
            case Cut(kind=kind):
                ending = Ending.RESET if kind == "reset" else Ending.CUT
            case ToolCompleteChunk():
                pass  # The dialect has no sign for it; the pieces were all there is.
            case _:
                ending = Ending.REPORTED if isinstance(beat, Report) else ending
                yield wait + gap, _piece(_data(beat, envelope, tools))
                wait = 0.0
    yield wait, ending
    yield math.inf, b""


def _data(beat: Beat, envelope: Mapping[str, Any], tools: dict[str, int]) -> str:
    match beat:
        case TextChunk(text=text):
            return _event(envelope, _choice({"content": text}))
        case ReasoningChunk(text=text):
            return _event(envelope, _choice({"reasoning_content": text}))
        case ToolChunk():
            return _event(envelope, _choice({"tool_calls": [_tool(beat, tools)]}))
        case UsageChunk():
            return _event(envelope, {"choices": [], "usage": _usage(beat)})
        case FinishChunk(raw=raw):
            return _event(envelope, _choice({}, raw)) + "data: [DONE]\n\n"
        case Report(message=message, code=code):
            return _event({"error": {"message": message, "type": "scripted", "code": code}}, {})
        case _:
            raise AssertionError(f"{beat!r} has no bytes")


def _event(envelope: Mapping[str, Any], rest: Mapping[str, Any]) -> str:
    return f"data: {dumps({**envelope, **rest})}\n\n"


def _choice(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _tool(chunk: ToolChunk, tools: dict[str, int]) -> dict[str, Any]:
    index = tools.setdefault(chunk.call, len(tools))
    if chunk.name is None:
        return {"index": index, "function": {"arguments": chunk.arguments}}
    function = {"name": chunk.name, "arguments": chunk.arguments}
    return {"index": index, "id": chunk.call, "type": "function", "function": function}


def _usage(chunk: UsageChunk) -> dict[str, Any]:
    return {
        "prompt_tokens": chunk.input,
        "completion_tokens": chunk.output,
        "prompt_tokens_details": {"cached_tokens": chunk.cached},
        "completion_tokens_details": {"reasoning_tokens": chunk.reasoning},
    }


def _piece(data: str) -> bytes:
    # An echoed prompt may hold half a surrogate pair, which no encoding of the web can carry.
    body = data.encode("utf-8", "replace")
    return b"%x\r\n%b\r\n" % (len(body), body)
