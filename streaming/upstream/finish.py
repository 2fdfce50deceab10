"""Why an answer ended: the words of all services, and ours."""

from __future__ import annotations

import re
from typing import Any, Final

from streaming.upstream.faults import fault
from streaming.upstream.ports import FinishChunk
from streaming.upstream.unicode import valid

# Between two words, as far as services have any: `tool_use`, `tool-use`, `tool use` and `ToolUse` are one.
_SEPARATORS: Final = re.compile(r"[\s_-]+")


def plain(raw: str) -> str:
    """Write a word as the tables here do: services differ in case, and in what separates two words."""
    return _SEPARATORS.sub("", raw).lower()


def _words(meaning: str, *words: str) -> dict[str, str]:
    return dict.fromkeys(map(plain, words), meaning)


FINISHES: Final[dict[str, str]] = {
    **_words(
        "stop",
        "stop", "end_turn", "stop_sequence", "complete", "completed", "eos_token", "eos", "eos_found", "finish",
        "finished", "end_of_text", "stop_string_found", "stop_criteria_met", "content_filtered_stop", "normal", "done",
        "success",
    ),
    **_words(
        "length",
        "length", "max_length", "max_tokens", "max_output", "max_output_tokens", "max_new_tokens", "model_length",
        "model_context_window_exceeded", "context_length_exceeded", "context_length_reached", "truncated", "incomplete",
        "incomplete:max_output_tokens", "incomplete:max_tokens", "limit", "token_limit", "error_limit",
        "max_predicted_tokens_reached",
    ),
    **_words("tool_calls", "tool_calls", "tool_call", "function_call", "function_calls", "tool_use", "requires_action"),
    **_words(
        "content_filter",
        "content_filter", "content_filtered", "incomplete:content_filter", "safety", "recitation", "blocklist",
        "prohibited_content", "spii", "image_safety", "image_prohibited_content", "image_recitation", "model_armor",
        "guardrail_intervened", "error_toxic", "blocked", "sensitive", "rag_query_when_rag_disabled", "moderation",
        "policy_violation",
    ),
    **_words("refusal", "refusal"),
    **_words("pause", "pause_turn", "compaction"),
}  # fmt: skip
# These words end the call as an error, whatever else was said.
FAILURES: Final[dict[str, str]] = {
    **_words(
        "upstream_reported",
        "error", "failed", "network_error", "server_error", "internal_error", "internal_server_error", "engine_error",
        "model_error", "stream_error", "upstream_error", "connection_error", "unknown_error", "exception", "overloaded",
        "rate_limit", "service_unavailable",
    ),
    # `load` and `unload` are Ollama's words for an answer in which only the model was loaded or given up.
    **_words(
        "upstream_interrupted",
        "abort", "aborted", "cancelled", "canceled", "user_cancel", "insufficient_system_resource", "timeout",
        "time_limit", "load", "unload", "model_unloaded", "user_stopped", "too_many_tool_calls", "interrupted",
        "terminated", "preempted", "killed",
    ),
    **_words(
        "malformed_tool_call",
        "malformed_function_call", "unexpected_tool_call", "malformed_tool_use", "missing_thought_signature",
    ),
    **_words("malformed_stream", "malformed_model_output", "malformed_response"),
}  # fmt: skip
# What some services write for "not yet".
_NONE: Final = frozenset(map(plain, ("", "null", "none", "not_finished", "in_progress", "finish_reason_unspecified")))


def stated(raw: Any) -> str | None:
    """Give the upstream's word, valid as text; None where it says nothing yet."""
    return valid(str(raw)) if raw and plain(str(raw)) not in _NONE else None


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
