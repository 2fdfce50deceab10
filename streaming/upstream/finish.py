"""Why an answer ended: the words of all services, and ours."""

from __future__ import annotations

from typing import Final

from streaming.upstream.faults import fault
from streaming.upstream.ports import FinishChunk

_STOP = (
    "stop", "end_turn", "stop_sequence", "STOP", "COMPLETE", "STOP_SEQUENCE", "completed", "eos_token", "eos",
    "FINISH", "FINISHED", "ENDOFTEXT", "endoftext", "CONTENT_FILTERED_STOP",
)  # fmt: skip
_LENGTH = (
    "length", "max_tokens", "MAX_TOKENS", "model_length", "model_context_window_exceeded",
    "incomplete:max_output_tokens", "incomplete", "LENGTH", "limit",
)  # fmt: skip
_FILTERED = (
    "content_filter", "incomplete:content_filter", "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
    "IMAGE_SAFETY", "guardrail_intervened", "content_filtered", "CONTENT_FILTERED", "ERROR_TOXIC", "blocked",
)  # fmt: skip
FINISHES: Final[dict[str, str]] = {
    **dict.fromkeys(_STOP, "stop"),
    **dict.fromkeys(_LENGTH, "length"),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use", "TOOL_CALL", "requires_action"), "tool_calls"),
    **dict.fromkeys(_FILTERED, "content_filter"),
    "refusal": "refusal",
    "pause_turn": "pause",
}
# These words end the call as an error, whatever else was said.
FAILURES: Final[dict[str, str]] = {
    "error": "upstream_reported",
    "ERROR": "upstream_reported",
    "failed": "upstream_reported",
    "abort": "upstream_interrupted",
    "cancelled": "upstream_interrupted",
    "insufficient_system_resource": "upstream_interrupted",
    "MALFORMED_FUNCTION_CALL": "malformed_tool_call",
    "UNEXPECTED_TOOL_CALL": "malformed_tool_call",
    "malformed_tool_use": "malformed_tool_call",
    "malformed_model_output": "malformed_stream",
}


def conclude(raw: str | None, *, tool_completed: bool, refused: bool) -> FinishChunk:
    """
    Turn the upstream's word into ours.

    `refused`: the answer was a refusal and nothing else. A completed tool call, and a refusal, are
    more telling than the word stop.

    Raises:
        UpstreamError: the word means that the call failed.
    """
    if raw in FAILURES:
        raise fault(FAILURES[raw], detail=f"finish reason {raw}")
    finish = FINISHES.get(raw or "", "unknown")
    if finish in ("stop", "unknown") and tool_completed:
        finish = "tool_calls"
    elif finish == "stop" and refused:
        finish = "refusal"
    return FinishChunk(finish, raw)
