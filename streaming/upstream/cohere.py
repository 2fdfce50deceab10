"""Cohere's Chat, version 2."""

from __future__ import annotations

from typing import Any, Final

from streaming.upstream.answer import Answer
from streaming.upstream.dialect import JsonDialect
from streaming.upstream.faults import fault
from streaming.upstream.framing import SseFramer
from streaming.upstream.limits import Limits
from streaming.upstream.numbers import PartNumbers
from streaming.upstream.parts import take_content, take_reasoning
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
from streaming.upstream.tools import name_and_arguments
from streaming.upstream.unread import listed
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
        self._contents = PartNumbers()
        self._calls = PartNumbers()

    def take(self, payload: dict[str, Any], event: str) -> None:
        delta = payload.get("delta") or {}
        message, index = delta.get("message") or {}, payload.get("index")
        match payload.get("type") or event:
            case "content-delta" | "content-start":
                if index != self._contents.newest:
                    self._contents.see(index)
                take_content(self.answer, message.get("content"))
            case "tool-call-start" | "tool-call-delta":
                self._calls.see(index)
                self._message(message, index)
            case "tool-plan-delta" | "message-start":
                self._message(message, index)
            case "citation-start":
                self.answer.passed_over()
            case "message-end":
                if message:
                    self.reread(lambda: self._message(message, None))
                self._end(delta)
            case "message" if payload.get("message"):  # The service answered without streaming.
                self._message(payload["message"], None)
                self._end(payload)
            case _:
                pass  # The ends of parts.

    def _message(self, message: dict[str, Any], index: Any) -> None:
        take_reasoning(self.answer, message.get("tool_plan"))
        take_content(self.answer, message.get("content"))
        for call in listed(message.get("tool_calls")):
            name, arguments = name_and_arguments(call)
            self.answer.tool(id=call.get("id"), index=index, name=name, arguments=arguments)

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
        self.answer.finished(delta.get("finish_reason"))
        self.end()
