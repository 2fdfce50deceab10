"""Why an answer ended: the words of all services, and ours."""

from __future__ import annotations

from typing import Any, Final

from streaming.upstream.faults import fault
from streaming.upstream.ports import FinishChunk
from streaming.upstream.unicode import valid

# Without case, and with `_` for `-`, as `plain` writes them.
_STOP = (
    "stop", "end_turn", "stop_sequence", "complete", "completed", "eos_token", "eos", "eosfound", "stopstringfound",
    "finish", "finished", "endoftext", "stop_criteria_met", "content_filtered_stop", "normal",
)  # fmt: skip
_LENGTH = (
    "length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded",
    "incomplete:max_output_tokens", "incomplete", "limit", "token_limit", "error_limit", "maxpredictedtokensreached",
    "contextlengthreached",
)  # fmt: skip
_FILTERED = (
    "content_filter", "incomplete:content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii",
    "image_safety", "image_prohibited_content", "image_recitation", "model_armor", "guardrail_intervened",
    "content_filtered", "error_toxic", "blocked", "sensitive", "rag_query_when_rag_disabled",
)  # fmt: skip
_TOOLS = ("tool_calls", "tool_call", "function_call", "tool_use", "requires_action", "toolcalls")
FINISHES: Final[dict[str, str]] = {
    **dict.fromkeys(_STOP, "stop"),
    **dict.fromkeys(_LENGTH, "length"),
    **dict.fromkeys(_TOOLS, "tool_calls"),
    **dict.fromkeys(_FILTERED, "content_filter"),
    "refusal": "refusal",
    **dict.fromkeys(("pause_turn", "compaction"), "pause"),
}
_REPORTED = ("error", "failed", "network_error")
# `load` and `unload` are Ollama's words for an answer in which only the model was loaded or given up.
_INTERRUPTED = (
    "abort", "aborted", "cancelled", "canceled", "user_cancel", "insufficient_system_resource", "timeout", "time_limit",
    "load", "unload", "modelunloaded", "userstopped", "too_many_tool_calls",
)  # fmt: skip
_BAD_CALLS = ("malformed_function_call", "unexpected_tool_call", "malformed_tool_use", "missing_thought_signature")
# These words end the call as an error, whatever else was said.
FAILURES: Final[dict[str, str]] = {
    **dict.fromkeys(_REPORTED, "upstream_reported"),
    **dict.fromkeys(_INTERRUPTED, "upstream_interrupted"),
    **dict.fromkeys(_BAD_CALLS, "malformed_tool_call"),
    **dict.fromkeys(("malformed_model_output", "malformed_response"), "malformed_stream"),
}
# What some services write for "not yet".
_NONE: Final = frozenset({"", "null", "none", "not_finished", "in_progress", "finish_reason_unspecified"})


def stated(raw: Any) -> str | None:
    """Give the upstream's word, valid as text; None where it says nothing yet."""
    return valid(str(raw)) if raw and plain(str(raw)) not in _NONE else None


def plain(raw: str) -> str:
    """Write a word as the tables here do: services differ in case, and in the sign between two words."""
    return raw.strip().lower().replace("-", "_")


def conclude(raw: str | None, *, tool_completed: bool, refused: bool) -> FinishChunk:
    """
    Turn the upstream's word into ours.

    `refused`: the answer was a refusal and nothing else. A completed tool call, and a refusal, are
    more telling than the word stop.

    Raises:
        UpstreamError: the word means that the call failed.
    """
    word = plain(raw or "")
    if word in FAILURES:
        raise fault(FAILURES[word], detail=f"finish reason {raw}")
    finish = FINISHES.get(word, "unknown")
    if finish in ("stop", "unknown") and tool_completed:
        finish = "tool_calls"
    elif finish == "stop" and refused:
        finish = "refusal"
    return FinishChunk(finish, raw)
