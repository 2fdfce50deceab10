"""Cohere's Chat, version 2."""

from __future__ import annotations

from typing import Any, Final

from streaming.upstream.answer import Answer
from streaming.upstream.dialect import JsonDialect
from streaming.upstream.faults import fault
from streaming.upstream.framing import SseFramer
from streaming.upstream.limits import Limits
from streaming.upstream.ports import ChatRequest
from streaming.upstream.request import (
    Check,
    Fields,
    between,
    build_messages,
    build_tools,
    check_extras,
    image_url_part,
    take_params,
)
from streaming.upstream.usage import count

PARAMS: Final[Fields] = {
    "temperature": "temperature",
    "top_p": "p",
    "max_tokens": "max_tokens",
    "seed": "seed",
    "stop": "stop_sequences",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
CHECKS: Final[dict[str, Check]] = {"presence_penalty": between(0, 1), "frequency_penalty": between(0, 1)}


def build_body(request: ChatRequest) -> dict[str, Any]:
    """
    Build the JSON of a call.

    Raises:
        UpstreamError: unsupported_parameter, or what check_extras raises; unsupported_json_schema beside tools.
    """
    check_extras(request)
    if request.tools and request.answer_schema:
        raise fault("unsupported_json_schema", detail="response_format and tools exclude each other")
    params = take_params(request.params, PARAMS, CHECKS)
    if request.answer_schema:
        params["response_format"] = {"type": "json_object", "json_schema": dict(request.answer_schema.schema)}
    messages = build_messages(request.messages, image_url_part)
    return {"model": request.model, "messages": messages, "stream": True, **build_tools(request.tools), **params}


class Cohere(JsonDialect):
    """One response. It is whole when message-end was read; the plan for tool calls is reasoning."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(SseFramer(limits.line_bytes), Answer())

    def is_whole(self) -> bool:
        return self.answer.finish is not None

    def take(self, payload: dict[str, Any], event: str) -> None:
        delta = payload.get("delta") or {}
        message = delta.get("message") or {}
        match payload.get("type", event):
            case "content-delta" | "content-start":
                content = message.get("content") or {}
                self.answer.reasoning(content.get("thinking") or "")
                self.answer.text(content.get("text") or "")
            case "tool-plan-delta":
                self.answer.reasoning(message.get("tool_plan") or "")
            case "tool-call-start" | "tool-call-delta":
                self._call(payload.get("index"), message["tool_calls"])
            case "message-end":
                self._end(delta)
            case _:
                pass  # Citations and the ends of parts.

    def _call(self, index: int | None, call: dict[str, Any]) -> None:
        function = call.get("function") or {}
        self.answer.tool(id=call.get("id"), index=index, name=function.get("name"), arguments=function.get("arguments"))

    def _end(self, delta: dict[str, Any]) -> None:
        usage = delta.get("usage") or {}
        self.answer.used(
            {
                "input": count(usage, "tokens.input_tokens"),
                "output": count(usage, "tokens.output_tokens"),
                "cached": count(usage, "cached_tokens"),
            }
        )
        if delta.get("error"):
            self.fail(delta)
        self.answer.finish = delta.get("finish_reason") or self.answer.finish
        self.done = True
