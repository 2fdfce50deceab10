"""Anthropic Messages."""

from __future__ import annotations

from typing import Any, Final

from streaming.upstream.answer import Answer
from streaming.upstream.dialect import JsonDialect
from streaming.upstream.faults import fault
from streaming.upstream.framing import SseFramer
from streaming.upstream.limits import Limits
from streaming.upstream.numbers import PartNumbers
from streaming.upstream.parts import take_content
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
from streaming.upstream.tools import name_and_arguments
from streaming.upstream.unread import listed
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
# Blocks of the service's own doings, beside those that end in _tool_result.
OTHERS: Final = frozenset({"server_tool_use", "mcp_tool_use", "compaction", "fallback", "container_upload"})


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
        self._ours: dict[Any, bool] = {}  # By the index of a block with input: whether it calls a tool of ours.
        self._numbers = PartNumbers()
        self._usage: dict[str, Any] = {}

    def take(self, payload: dict[str, Any], event: str) -> None:
        match payload.get("type") or event:
            case "content_block_delta":
                index = payload.get("index")
                if index != self._numbers.newest:
                    self._numbers.see(index)
                self._delta(index, payload.get("delta") or {})
            case "content_block_start":
                index = payload.get("index")
                self._numbers.see(index)
                self._block(index, payload.get("content_block") or {})
            case "message_start":
                self._start(payload.get("message") or {})
            case "message_delta":
                self.answer.finished((payload.get("delta") or payload).get("stop_reason"))
                self._used(payload.get("usage"))
            case "message_stop":
                self._again(payload.get("message") or {})
                self.end()
            case "message" if "content" in payload:  # The service answered without streaming.
                self._again(payload)
                self.end()
            case "error":
                self.fail(payload)
            case _:
                pass  # Pings, the ends of blocks, and what may be added: documented as safe to pass over.

    def _start(self, message: dict[str, Any]) -> None:
        begun, self._message = self._message, self._message or message.get("id") or ""
        if begun is None:
            self._used(message.get("usage"))
            self._blocks(message)
        elif message.get("id") and begun and message["id"] != begun:
            raise fault("spliced_stream", detail=f"message {message['id']} inside {begun}")

    def _again(self, message: dict[str, Any]) -> None:
        """Read a whole message, of which some or all may have come before."""
        if message.get("content"):
            self.reread(lambda: self._blocks(message))
        self.answer.finished(message.get("stop_reason"))
        self._used(message.get("usage"))

    def _blocks(self, message: dict[str, Any]) -> None:
        for index, block in enumerate(listed(message.get("content"))):
            self._block(index, block if isinstance(block, dict) else {"type": "text", "text": block})

    def _block(self, index: Any, block: dict[str, Any]) -> None:
        kind = str(block.get("type") or ("tool_use" if block.get("name") else ""))
        if kind == "text":
            take_content(self.answer, block)
        elif kind == "redacted_thinking":
            self.answer.reasoning(REDACTED)
        elif kind == "tool_use":
            self._ours[index] = True
            name, arguments = name_and_arguments(block)
            self.answer.tool(id=block.get("id"), index=index, name=name, arguments=arguments)
        elif kind in OTHERS or kind.endswith("_tool_result"):
            self._ours[index] = False
            self.answer.passed_over()
        else:
            if kind not in ("thinking", ""):
                self._ours[index] = False
            take_content(self.answer, block)

    def _delta(self, index: Any, delta: dict[str, Any]) -> None:
        match delta.get("type"):
            case "text_delta":
                text = delta.get("text")
                if text:
                    self.answer.text(text)
            case "thinking_delta":
                if delta.get("thinking"):
                    self.answer.reasoning(delta["thinking"])
            case "signature_delta" | "citations_delta" | "compaction_delta":
                self.answer.passed_over()
            case kind if kind == "input_json_delta" or "partial_json" in delta:
                self._arguments(index, name_and_arguments(delta)[1])
            case _:
                take_content(self.answer, delta)

    def _arguments(self, index: Any, piece: Any) -> None:
        if index not in self._ours:
            raise fault("malformed_tool_call", detail=f"arguments for block {index}, which never began")
        if self._ours[index]:
            self.answer.tool(id=None, index=index, name=None, arguments=piece)
        else:
            self.answer.passed_over()

    def _used(self, usage: Any) -> None:
        counts = usage if isinstance(usage, dict) else {}
        self._usage.update({name: value for name, value in counts.items() if value is not None})
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
