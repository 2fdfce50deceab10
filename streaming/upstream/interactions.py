"""Gemini Interactions."""

from __future__ import annotations

from typing import Any, Final

from streaming.upstream.answer import Answer
from streaming.upstream.dialect import JsonDialect
from streaming.upstream.framing import SseFramer
from streaming.upstream.limits import Limits
from streaming.upstream.numbers import PartNumbers
from streaming.upstream.parts import take_content
from streaming.upstream.ports import ChatRequest, Image
from streaming.upstream.request import (
    Fields,
    as_base64,
    check_extras,
    function,
    one_of,
    split_system,
    take_params,
    text_parts,
)
from streaming.upstream.tools import name_and_arguments
from streaming.upstream.unread import listed
from streaming.upstream.usage import added, count

PARAMS: Final[Fields] = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_output_tokens",
    "seed": "seed",
    "stop": "stop_sequences",
    "reasoning_effort": "thinking_level",
}
LEVELS: Final = ("minimal", "low", "medium", "high", "xhigh")
# The prompt's steps, signatures, and the service's own doings, beside those that end in _call or _result.
OTHERS: Final = frozenset({"user_input", "thought_signature", "text_annotation"})
STEPS: Final = {"user": "user_input", "assistant": "model_output"}


def build_body(request: ChatRequest) -> dict[str, Any]:
    """
    Build the JSON of a call.

    Raises:
        UpstreamError: unsupported_parameter, or what check_extras raises.
    """
    check_extras(request)
    config = take_params(request.params, PARAMS, {"reasoning_effort": one_of(LEVELS)})
    if "thinking_level" in config:
        config["thinking_summaries"] = "auto"
    system, turns = split_system(request.messages)
    steps = [
        {"type": STEPS[turn.role], "content": [*map(_image, turn.images), *text_parts(turn.content)]} for turn in turns
    ]
    body: dict[str, Any] = {"model": request.model, "input": steps, "stream": True, "store": False}
    if system:
        body["system_instruction"] = system
    if request.tools:
        body["tools"] = [{"type": "function", **function(tool)} for tool in request.tools]
    if request.answer_schema:
        schema = dict(request.answer_schema.schema)
        body["response_format"] = {"type": "text", "mime_type": "application/json", "schema": schema}
    return {**body, **({"generation_config": config} if config else {})}


def _image(image: Image) -> dict[str, Any]:
    return {"type": "image", "data": as_base64(image), "mime_type": image.media_type}


class Interactions(JsonDialect):
    """One response. It is whole when interaction.completed was read, whatever its status."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(SseFramer(limits.line_bytes), Answer())
        self._numbers = PartNumbers()

    def take(self, payload: dict[str, Any], event: str) -> None:
        index = payload.get("index")
        match payload.get("event_type") or event:
            case "step.delta" | "content.delta":
                if index != self._numbers.newest:
                    self._numbers.see(index)
                self._step(index, payload.get("delta") or {})
            case "step.start" | "content.start":
                self._numbers.see(index)
                self._step(index, payload.get("step") or payload.get("content") or {})
            case "interaction.completed" | "interaction.complete":
                self._end(payload.get("interaction") or {})
            case "message" if payload.get("status"):  # The service answered without streaming.
                self._end(payload)
            case _:
                pass

    def _step(self, index: Any, step: dict[str, Any]) -> None:
        """Read a step, a content, or a delta of one: their kinds are not told apart everywhere."""
        if step.get("type") == "text":
            take_content(self.answer, step)
            return
        kind = str(step.get("type") or ("function_call" if step.get("name") else ""))
        if kind in ("function_call", "arguments_delta"):
            name, arguments = name_and_arguments(step)
            self.answer.tool(id=step.get("id"), index=index, name=name, arguments=arguments)
        elif kind in OTHERS or kind.endswith(("_call", "_result")):
            self.answer.passed_over()
        else:
            take_content(self.answer, step)

    def _end(self, interaction: dict[str, Any]) -> None:
        steps = listed(interaction.get("steps") or interaction.get("outputs"))
        if steps:
            self.reread(lambda: self._steps(steps))
        usage = interaction.get("usage") or {}
        reasoning = count(usage, "total_thought_tokens")
        self.answer.used(
            {
                "input": added(count(usage, "total_input_tokens"), count(usage, "total_tool_use_tokens")),
                "output": added(count(usage, "total_output_tokens"), reasoning),
                "cached": count(usage, "total_cached_tokens"),
                "reasoning": reasoning,
            }
        )
        if interaction.get("error"):
            self.fail(interaction)
        self.answer.finished(interaction.get("status"))
        self.end()

    def _steps(self, steps: list[dict[str, Any]]) -> None:
        for index, step in enumerate(steps):
            self._step(index, step)
