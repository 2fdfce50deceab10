"""Anthropic Messages."""

from __future__ import annotations

from typing import Any, Final

from streaming.upstream.answer import Answer
from streaming.upstream.dialect import JsonDialect
from streaming.upstream.faults import fault
from streaming.upstream.framing import SseFramer
from streaming.upstream.limits import Limits
from streaming.upstream.ports import ChatRequest, Image
from streaming.upstream.request import (
    Check,
    Fields,
    as_base64,
    between,
    build_messages,
    check_extras,
    function,
    one_of,
    split_system,
    take_params,
)
from streaming.upstream.usage import added, count

PARAMS: Final[Fields] = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_tokens",
    "stop": "stop_sequences",
    "reasoning_effort": "reasoning_effort",
}
CHECKS: Final[dict[str, Check]] = {
    "temperature": between(0, 1),
    "reasoning_effort": one_of(("none", "low", "medium", "high", "xhigh", "max")),
}
HEADERS: Final = {"anthropic-version": "2023-06-01"}
# The service demands a limit. Every model that is still served writes as much as this.
MAX_TOKENS: Final = 8192
REDACTED: Final = "[redacted_thinking]"


def build_body(request: ChatRequest) -> dict[str, Any]:
    """
    Build the JSON of a call.

    Raises:
        UpstreamError: unsupported_parameter, or what check_extras raises.
    """
    check_extras(request)
    params = take_params(request.params, PARAMS, CHECKS)
    effort = params.pop("reasoning_effort", None)
    output: dict[str, Any] = {}
    if effort == "none":
        params["thinking"] = {"type": "disabled"}
    elif effort:
        # Newer models leave their thoughts out unless they are asked for them.
        params["thinking"], output["effort"] = {"type": "adaptive", "display": "summarized"}, effort
    if request.answer_schema:
        output["format"] = {"type": "json_schema", "schema": dict(request.answer_schema.schema)}
    if output:
        params["output_config"] = output
    if request.tools:
        params["tools"] = [function(tool, "input_schema") for tool in request.tools]
    system, turns = split_system(request.messages)
    if system:
        params["system"] = system
    messages = build_messages(turns, _image)
    return {"model": request.model, "messages": messages, "stream": True, "max_tokens": MAX_TOKENS, **params}


def _image(image: Image) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": as_base64(image)}}


def authorise(key: str, url: str, content: bytes) -> dict[str, str]:  # noqa: ARG001
    return {"x-api-key": key}


class Anthropic(JsonDialect):
    """
    One response. It is whole when message_stop was read.

    Blocks of server tools are not calls that anyone here could answer, so they show nothing. Calls are
    completed at the end, where it is known whether the length limit cut the last one.
    """

    def __init__(self, limits: Limits) -> None:
        super().__init__(SseFramer(limits.line_bytes), Answer())
        self._message: str | None = None
        self._tools: set[int] = set()  # Indexes of blocks that are calls to tools of ours.
        self._usage: dict[str, Any] = {}

    def is_whole(self) -> bool:
        return self.done

    def take(self, payload: dict[str, Any], event: str) -> None:  # noqa: ARG002
        match payload.get("type"):
            case "content_block_delta":
                self._delta(payload["index"], payload["delta"])
            case "content_block_start":
                self._block(payload["index"], payload["content_block"])
            case "message_start":
                self._start(payload["message"])
            case "message_delta":
                self.answer.finish = payload["delta"].get("stop_reason") or self.answer.finish
                self._used(payload.get("usage"))
            case "message_stop":
                self.done = True
            case _:
                pass  # Pings, the ends of blocks, and what may be added: documented as safe to pass over.

    def _start(self, message: dict[str, Any]) -> None:
        if self._message is not None:
            if message.get("id") != self._message:
                raise fault("spliced_stream", detail=f"message {message.get('id')} inside {self._message}")
            return
        self._message = message.get("id", "")
        self._used(message.get("usage"))
        for index, block in enumerate(message.get("content") or ()):
            self._block(index, block)

    def _block(self, index: int, block: dict[str, Any]) -> None:
        match block.get("type"):
            case "text":
                self.answer.text(block.get("text") or "")
            case "thinking":
                self.answer.reasoning(block.get("thinking") or "")
            case "redacted_thinking":
                self.answer.reasoning(REDACTED)
            case "tool_use":
                self._tools.add(index)
                self.answer.tool(
                    id=block.get("id"), index=index, name=block.get("name"), arguments=block.get("input") or None
                )
            case _:
                pass

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        match delta.get("type"):
            case "text_delta":
                self.answer.text(delta["text"])
            case "thinking_delta":
                self.answer.reasoning(delta["thinking"])
            case "input_json_delta" if index in self._tools:
                self.answer.tool(id=None, index=index, name=None, arguments=delta["partial_json"])
            case _:
                pass  # Signatures, citations, and the input of server tools.

    def _used(self, usage: dict[str, Any] | None) -> None:
        self._usage.update({name: value for name, value in (usage or {}).items() if value is not None})
        cached = count(self._usage, "cache_read_input_tokens")
        fresh, written = count(self._usage, "input_tokens"), count(self._usage, "cache_creation_input_tokens")
        self.answer.used(
            {
                "input": added(fresh, cached, written),
                "output": count(self._usage, "output_tokens"),
                "cached": cached,
                "reasoning": count(self._usage, "output_tokens_details.thinking_tokens"),
            }
        )
