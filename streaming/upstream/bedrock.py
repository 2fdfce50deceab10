"""Amazon Bedrock ConverseStream."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any, Final

from streaming.upstream.answer import Answer
from streaming.upstream.dialect import JsonDialect
from streaming.upstream.eventstream import EventStreamFramer
from streaming.upstream.faults import fault
from streaming.upstream.limits import Limits
from streaming.upstream.numbers import PartNumbers
from streaming.upstream.parts import take_reasoning
from streaming.upstream.ports import AnswerSchema, ChatRequest, Message, Tool
from streaming.upstream.request import (
    Check,
    Fields,
    Headers,
    as_base64,
    bearer,
    between,
    check_extras,
    split_system,
    take_params,
)
from streaming.upstream.sigv4 import parse_credentials, sign
from streaming.upstream.tools import name_and_arguments
from streaming.upstream.usage import added, count

PARAMS: Final[Fields] = {
    "temperature": "temperature",
    "top_p": "topP",
    "max_tokens": "maxTokens",
    "stop": "stopSequences",
}
CHECKS: Final[dict[str, Check]] = {"temperature": between(0, 1)}
REDACTED: Final = "[redacted]"
# Members of a delta that are read elsewhere, or are the service's own doings.
OTHERS: Final = frozenset({"toolUse", "reasoningContent", "toolResult", "citation", "citationsContent", "image"})
DEFAULT_REGION: Final = "us-east-1"  # For a gateway, whose host names none.
_REGION: Final = re.compile(r"bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.")


def build_body(request: ChatRequest) -> dict[str, Any]:
    """
    Build the JSON of a call; the model is part of the address.

    Raises:
        UpstreamError: unsupported_parameter, or what check_extras raises.
    """
    check_extras(request)
    config = take_params(request.params, PARAMS, CHECKS)
    system, turns = split_system(request.messages)
    body: dict[str, Any] = {"messages": [{"role": turn.role, "content": _content(turn)} for turn in turns]}
    if system:
        body["system"] = [{"text": system}]
    if request.tools:
        body["toolConfig"] = {"tools": [_tool(tool) for tool in request.tools]}
    if request.answer_schema:
        body["outputConfig"] = {"textFormat": _format(request.answer_schema)}
    return {**body, **({"inferenceConfig": config} if config else {})}


def _content(turn: Message) -> list[dict[str, Any]]:
    images = [
        {"image": {"format": image.media_type.removeprefix("image/"), "source": {"bytes": as_base64(image)}}}
        for image in turn.images
    ]
    return [*images, *([{"text": turn.content}] if turn.content or not images else [])]


def _tool(tool: Tool) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    return {"toolSpec": {"name": tool.name, **described, "inputSchema": {"json": dict(tool.parameters)}}}


def _format(schema: AnswerSchema) -> dict[str, Any]:
    # The service wants the schema as text inside the JSON.
    return {
        "type": "json_schema",
        "structure": {"jsonSchema": {"name": schema.name, "schema": json.dumps(dict(schema.schema))}},
    }


def authorise(key: str, url: str, content: bytes) -> Headers:
    """Sign with `access:secret` or `access:secret:token`; any other key is a Bedrock API key."""
    credentials = parse_credentials(key)
    if credentials is None:
        return bearer(key, url, content)
    named = _REGION.search(url)
    region = named.group(1) if named else DEFAULT_REGION
    return sign(url, content, credentials, region=region, service="bedrock", now=datetime.now(UTC))


class Bedrock(JsonDialect):
    """One response. It is whole when messageStop was read; metadata with the usage follows it, or comes before."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(EventStreamFramer(limits.line_bytes), Answer())
        self._ours: dict[Any, bool] = {}  # By the index of a block with input: whether it calls a tool of ours.
        self._numbers = PartNumbers()
        self._metadata = False

    def take(self, payload: dict[str, Any], event: str) -> None:
        match event:
            case "contentBlockDelta":
                self._delta(self._index(payload), payload.get("delta") or {})
            case "contentBlockStart":
                self._start(self._index(payload), payload.get("start") or {})
            case "messageStop":
                self.answer.finished(payload.get("stopReason"))
                self.ended = True
            case "metadata":
                self._metadata = True
                self.answer.used(converse_usage(payload.get("usage") or {}))
            case _:
                pass  # messageStart, the ends of blocks, and what may be added.
        self.done = self._metadata and self.ended

    def _index(self, payload: dict[str, Any]) -> Any:
        index = payload.get("contentBlockIndex") or 0
        self._numbers.see(index)
        return index

    def _start(self, index: Any, start: dict[str, Any]) -> None:
        tool = start.get("toolUse")
        if tool:
            self._ours[index] = tool.get("type") != "server_tool_use"
        if tool and self._ours[index]:
            name, arguments = name_and_arguments(tool)
            self.answer.tool(id=tool.get("toolUseId"), index=index, name=name, arguments=arguments)
        else:
            self._content(start)

    def _delta(self, index: Any, delta: dict[str, Any]) -> None:
        if delta.get("toolUse"):
            self._arguments(index, name_and_arguments(delta["toolUse"])[1])
        if delta.get("reasoningContent"):
            self._reasoning(delta["reasoningContent"])
        self._content(delta)

    def _content(self, delta: dict[str, Any]) -> None:
        if delta.get("text"):
            self.answer.text(delta["text"])
        elif not delta.keys().isdisjoint(OTHERS):
            self.answer.passed_over()
        else:
            self.answer.unread(delta)

    def _arguments(self, index: Any, piece: Any) -> None:
        if index not in self._ours:
            raise fault("malformed_tool_call", detail=f"arguments for block {index}, which never began")
        if self._ours[index]:
            self.answer.tool(id=None, index=index, name=None, arguments=piece)

    def _reasoning(self, reasoning: dict[str, Any]) -> None:
        if reasoning.get("redactedContent"):
            self.answer.reasoning(REDACTED)
        else:
            take_reasoning(self.answer, reasoning.get("text") or reasoning.get("reasoningText"))


def converse_usage(raw: dict[str, Any]) -> dict[str, int | None]:
    cached = count(raw, "cacheReadInputTokens", "cacheReadInputTokenCount")
    written = count(raw, "cacheWriteInputTokens", "cacheWriteInputTokenCount")
    return {
        "input": added(count(raw, "inputTokens"), cached, written),
        "output": count(raw, "outputTokens"),
        "cached": cached,
    }
