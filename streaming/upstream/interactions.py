"""Gemini Interactions."""

from __future__ import annotations

from typing import Any, Final

from streaming.upstream.answer import Answer
from streaming.upstream.dialect import JsonDialect
from streaming.upstream.framing import SseFramer
from streaming.upstream.limits import Limits
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

    def is_whole(self) -> bool:
        return self.answer.finish is not None

    def take(self, payload: dict[str, Any], event: str) -> None:
        match payload.get("event_type", event):
            case "step.delta" | "content.delta":
                self._delta(payload.get("index"), payload["delta"])
            case "step.start":
                self._step(payload.get("index"), payload["step"])
            case "interaction.completed":
                self._end(payload["interaction"])
            case _:
                pass

    def _step(self, index: int | None, step: dict[str, Any]) -> None:
        if step.get("type") == "function_call":
            self.answer.tool(
                id=step.get("id"), index=index, name=step.get("name"), arguments=step.get("arguments") or None
            )

    def _delta(self, index: int | None, delta: dict[str, Any]) -> None:
        match delta.get("type"):
            case "text":
                self.answer.text(delta.get("text") or "")
            case "thought_summary":
                self.answer.reasoning((delta.get("content") or {}).get("text") or "")
            case "arguments_delta":
                self.answer.tool(id=None, index=index, name=None, arguments=delta.get("arguments"))
            case "function_call":
                self.answer.tool(
                    id=delta.get("id"), index=index, name=delta.get("name"), arguments=delta.get("arguments") or None
                )
            case _:
                pass  # Signatures and the service's own doings.

    def _end(self, interaction: dict[str, Any]) -> None:
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
        self.answer.finish = str(interaction.get("status"))
        self.done = True
