"""What a service of each dialect says on the wire: an answer's parts, and its errors, in its own form."""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from tests.streaming.upstream import eventstream

USED = (7, 5)  # Tokens of input and output that each service counts.
CALL, TOOL = "call_1", "get_weather"


def sse(payload: Any, event: str = "") -> bytes:
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(payload)}\n\n".encode()


class Speech(ABC):
    """One service's way to speak. An answer is `begin`, then texts or a tool call, then `finish`, then `end`."""

    adapter: ClassVar[str]
    path: ClassVar[str]  # What follows the operator's address.
    key_header: ClassVar[str] = "Authorization: Bearer the-key"
    content_type: ClassVar[str] = "text/event-stream"
    comment: ClassVar[bytes] = b": keep-alive\n\n"  # Keeps the connection, and says nothing.
    empty: ClassVar[bytes] = b"data:\n\nevent: ping\ndata: {}\n\n"  # Events that do no more.
    end: ClassVar[bytes] = b""

    def begin(self) -> bytes:
        return b""

    @abstractmethod
    def text(self, text: str) -> bytes: ...

    @abstractmethod
    def tool(self, *pieces: str) -> bytes:
        """Call the tool with arguments in these pieces."""

    @abstractmethod
    def finish(self, *, tool: bool = False) -> bytes:
        """Say how the answer ended, and what it used."""

    def unheard_of(self, text: str) -> bytes:
        """Put text where no documentation has any."""
        return sse({"type": "patch", "event_type": "patch", "output_text": text})

    @abstractmethod
    def error(self) -> bytes:
        """Report in mid-stream that the service failed."""

    def error_body(self, status: int) -> bytes:
        """Give the body of a response that refuses the request."""
        return json.dumps({"error": {"message": f"refused with {status}", "type": "refused", "code": None}}).encode()

    def answer(self, *texts: str) -> bytes:
        return self.begin() + b"".join(map(self.text, texts)) + self.finish() + self.end

    def tool_answer(self, *pieces: str) -> bytes:
        return self.begin() + self.tool(*pieces) + self.finish(tool=True) + self.end


class Chat(Speech):
    adapter = "openai_chat"
    path = "/chat/completions"
    end = b"data: [DONE]\n\n"

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], "usage": None})

    def begin(self) -> bytes:
        return self._chunk({"role": "assistant", "content": "", "refusal": None})

    def text(self, text: str) -> bytes:
        return self._chunk({"content": text})

    def tool(self, *pieces: str) -> bytes:
        first = {"index": 0, "id": CALL, "type": "function", "function": {"name": TOOL, "arguments": ""}}
        deltas = [first, *({"index": 0, "function": {"arguments": piece}} for piece in pieces)]
        return b"".join(self._chunk({"tool_calls": [delta]}) for delta in deltas)

    def finish(self, *, tool: bool = False) -> bytes:
        usage = {"prompt_tokens": USED[0], "completion_tokens": USED[1], "total_tokens": sum(USED)}
        counted = sse({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage})
        return self._chunk({}, "tool_calls" if tool else "stop") + counted

    def error(self) -> bytes:
        return sse({"error": {"message": "The server had an error", "type": "server_error", "code": None}})


class Azure(Chat):
    adapter = "azure"
    path = "/openai/deployments/some-model/chat/completions?api-version=2024-10-21"
    key_header = "api-key: the-key"

    def begin(self) -> bytes:
        filtered = sse({"choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]})
        return filtered + super().begin()


class Responses(Speech):
    adapter = "openai_responses"
    path = "/responses"

    def __init__(self) -> None:
        self._number = -1

    def _event(self, kind: str, **members: Any) -> bytes:
        self._number += 1
        return sse({"type": kind, "sequence_number": self._number, **members}, kind)

    def begin(self) -> bytes:
        return self._event("response.created", response={"id": "resp_1", "status": "in_progress"})

    def text(self, text: str) -> bytes:
        return self._event(
            "response.output_text.delta", item_id="msg_1", output_index=0, content_index=0, delta=text
        )  # fmt: skip

    def tool(self, *pieces: str) -> bytes:
        item = {"id": "fc_1", "type": "function_call", "call_id": CALL, "name": TOOL, "arguments": ""}
        deltas = [
            self._event("response.function_call_arguments.delta", item_id="fc_1", output_index=0, delta=piece)
            for piece in pieces
        ]
        whole = {**item, "arguments": "".join(pieces)}
        return (
            self._event("response.output_item.added", output_index=0, item=item)
            + b"".join(deltas)
            + self._event("response.output_item.done", output_index=0, item=whole)
        )

    def finish(self, *, tool: bool = False) -> bytes:
        usage = {"input_tokens": USED[0], "output_tokens": USED[1], "total_tokens": sum(USED)}
        return self._event("response.completed", response={"id": "resp_1", "status": "completed", "usage": usage})

    def error(self) -> bytes:
        failed = {"id": "resp_1", "status": "failed", "error": {"code": "server_error", "message": "boom"}}
        return self._event("error", code="server_error", message="boom", param=None) + self._event(
            "response.failed", response=failed
        )


class Anthropic(Speech):
    adapter = "anthropic"
    path = "/messages"
    key_header = "x-api-key: the-key"
    end = sse({"type": "message_stop"}, "message_stop")
    comment = sse({"type": "ping"}, "ping").replace(b"event: ping\ndata: ", b": ")

    def begin(self) -> bytes:
        usage = {"input_tokens": USED[0], "output_tokens": 1}
        start = {
            "type": "message_start",
            "message": {"id": "msg_1", "role": "assistant", "content": [], "usage": usage},
        }
        return sse(start, "message_start")

    def text(self, text: str) -> bytes:
        block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        return sse(block, "content_block_start") + self._delta({"type": "text_delta", "text": text})

    def tool(self, *pieces: str) -> bytes:
        block = {"type": "tool_use", "id": CALL, "name": TOOL, "input": {}}
        deltas = [self._delta({"type": "input_json_delta", "partial_json": piece}) for piece in pieces]
        return (
            sse({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start")
            + b"".join(deltas)
            + sse({"type": "content_block_stop", "index": 0}, "content_block_stop")
        )

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return sse({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")

    def finish(self, *, tool: bool = False) -> bytes:
        delta = {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None}
        return sse({"type": "message_delta", "delta": delta, "usage": {"output_tokens": USED[1]}}, "message_delta")

    def error(self) -> bytes:
        return sse({"type": "error", "error": {"type": "api_error", "message": "Internal server error"}}, "error")

    def error_body(self, status: int) -> bytes:
        return json.dumps({"type": "error", "error": {"type": "refused", "message": f"refused with {status}"}}).encode()


class Gemini(Speech):
    adapter = "gemini"
    path = "/models/some-model:streamGenerateContent?alt=sse"
    key_header = "x-goog-api-key: the-key"

    def _candidate(self, parts: list[dict[str, Any]], **members: Any) -> bytes:
        content = {"content": {"role": "model", "parts": parts}, "index": 0, **members}
        return sse({"candidates": [content], "usageMetadata": {"promptTokenCount": USED[0]}}).replace(b"\n", b"\r\n")

    def text(self, text: str) -> bytes:
        return self._candidate([{"text": text}])

    def tool(self, *pieces: str) -> bytes:
        arguments = json.loads("".join(pieces))
        return self._candidate([{"functionCall": {"id": CALL, "name": TOOL, "args": arguments}}])

    def finish(self, *, tool: bool = False) -> bytes:
        usage = {"promptTokenCount": USED[0], "candidatesTokenCount": USED[1]}
        last = {"content": {"role": "model", "parts": [{"text": ""}]}, "index": 0, "finishReason": "STOP"}
        return sse({"candidates": [last], "usageMetadata": usage})

    def error(self) -> bytes:
        return sse({"error": {"code": 500, "message": "An internal error has occurred", "status": "INTERNAL"}})

    def error_body(self, status: int) -> bytes:
        return json.dumps({"error": {"code": status, "message": "refused", "status": "REFUSED"}}).encode()


class Interactions(Speech):
    adapter = "gemini_interactions"
    path = "/interactions?alt=sse"
    key_header = "x-goog-api-key: the-key"
    end = b"data: [DONE]\n\n"

    def _event(self, kind: str, **members: Any) -> bytes:
        return sse({"event_type": kind, **members}, kind)

    def begin(self) -> bytes:
        return self._event("interaction.created", interaction={"id": "int_1", "status": "in_progress"})

    def text(self, text: str) -> bytes:
        return self._event("step.delta", index=0, delta={"type": "text", "text": text})

    def tool(self, *pieces: str) -> bytes:
        step = {"type": "function_call", "id": CALL, "name": TOOL, "arguments": {}}
        deltas = [
            self._event("step.delta", index=0, delta={"type": "arguments_delta", "arguments": piece})
            for piece in pieces
        ]
        return self._event("step.start", index=0, step=step) + b"".join(deltas) + self._event("step.stop", index=0)

    def finish(self, *, tool: bool = False) -> bytes:
        status = "requires_action" if tool else "completed"
        usage = {"total_input_tokens": USED[0], "total_output_tokens": USED[1]}
        return self._event("interaction.completed", interaction={"id": "int_1", "status": status, "usage": usage})

    def error(self) -> bytes:
        return self._event("error", error={"code": 500, "message": "boom"})


class Ollama(Speech):
    adapter = "ollama"
    path = "/api/chat"
    content_type = "application/x-ndjson"
    comment = b"\n"
    empty = b"{}\n \nnull\n"

    def _line(self, **members: Any) -> bytes:
        return json.dumps({"model": "some-model", "created_at": "2026-01-31T00:00:00Z", **members}).encode() + b"\n"

    def text(self, text: str) -> bytes:
        return self._line(message={"role": "assistant", "content": text}, done=False)

    def tool(self, *pieces: str) -> bytes:
        call = {"id": CALL, "function": {"name": TOOL, "arguments": json.loads("".join(pieces))}}
        return self._line(message={"role": "assistant", "content": "", "tool_calls": [call]}, done=False)

    def finish(self, *, tool: bool = False) -> bytes:
        counted = {"prompt_eval_count": USED[0], "eval_count": USED[1]}
        return self._line(message={"role": "assistant", "content": ""}, done=True, done_reason="stop", **counted)

    def unheard_of(self, text: str) -> bytes:
        return self._line(output_text=text, done=False)

    def error(self) -> bytes:
        return b'{"error":"an error was encountered while running the model"}\n'

    def error_body(self, status: int) -> bytes:
        return json.dumps({"error": f"refused with {status}"}).encode()


class Cohere(Speech):
    adapter = "cohere"
    path = "/chat"
    end = b"data: [DONE]\n\n"

    def _event(self, kind: str, delta: dict[str, Any], **members: Any) -> bytes:
        return sse({"type": kind, **members, "delta": delta}, kind)

    def begin(self) -> bytes:
        return self._event("message-start", {"message": {"role": "assistant", "content": []}}, id="1")

    def text(self, text: str) -> bytes:
        return self._event("content-delta", {"message": {"content": {"text": text}}}, index=0)

    def tool(self, *pieces: str) -> bytes:
        first = {"id": CALL, "type": "function", "function": {"name": TOOL, "arguments": ""}}
        rest = [{"function": {"arguments": piece}} for piece in pieces]
        deltas = [self._event("tool-call-delta", {"message": {"tool_calls": call}}, index=0) for call in rest]
        start = self._event("tool-call-start", {"message": {"tool_calls": first}}, index=0)
        return start + b"".join(deltas) + sse({"type": "tool-call-end", "index": 0}, "tool-call-end")

    def finish(self, *, tool: bool = False) -> bytes:
        usage = {"tokens": {"input_tokens": USED[0], "output_tokens": USED[1]}}
        return self._event("message-end", {"finish_reason": "TOOL_CALL" if tool else "COMPLETE", "usage": usage})

    def error(self) -> bytes:
        return self._event("message-end", {"finish_reason": "ERROR", "error": "stream error"})

    def error_body(self, status: int) -> bytes:
        return json.dumps({"message": f"refused with {status}"}).encode()


class Bedrock(Speech):
    adapter = "bedrock"
    path = "/model/some-model/converse-stream"
    content_type = "application/vnd.amazon.eventstream"

    def begin(self) -> bytes:
        return eventstream.event("messageStart", {"role": "assistant"})

    def text(self, text: str) -> bytes:
        return eventstream.event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": text}, "p": "abc"})

    def tool(self, *pieces: str) -> bytes:
        start = {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": CALL, "name": TOOL}}}
        deltas = [{"contentBlockIndex": 0, "delta": {"toolUse": {"input": piece}}} for piece in pieces]
        frames = [eventstream.event("contentBlockDelta", delta) for delta in deltas]
        stop = eventstream.event("contentBlockStop", {"contentBlockIndex": 0})
        return eventstream.event("contentBlockStart", start) + b"".join(frames) + stop

    def finish(self, *, tool: bool = False) -> bytes:
        return eventstream.event("messageStop", {"stopReason": "tool_use" if tool else "end_turn"})

    @property
    def end(self) -> bytes:  # type: ignore[override]
        usage = {"inputTokens": USED[0], "outputTokens": USED[1], "totalTokens": sum(USED)}
        return eventstream.event("metadata", {"usage": usage, "metrics": {"latencyMs": 9}})

    def unheard_of(self, text: str) -> bytes:
        return eventstream.event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"note": {"text": text}}})

    def error(self) -> bytes:
        return eventstream.exception("modelStreamErrorException", {"message": "boom"})

    def error_body(self, status: int) -> bytes:
        return json.dumps({"message": f"refused with {status}"}).encode()


class BedrockInvoke(Bedrock):
    """Claude's own events inside Bedrock's frames."""

    adapter = "bedrock_invoke"
    path = "/model/some-model/invoke-with-response-stream"

    def __init__(self) -> None:
        self._claude = Anthropic()

    def begin(self) -> bytes:
        return self._framed(self._claude.begin())

    def text(self, text: str) -> bytes:
        return self._framed(self._claude.text(text))

    def tool(self, *pieces: str) -> bytes:
        return self._framed(self._claude.tool(*pieces))

    def finish(self, *, tool: bool = False) -> bytes:
        return self._framed(self._claude.finish(tool=tool))

    @property
    def end(self) -> bytes:  # type: ignore[override]
        return self._framed(Anthropic.end)

    def unheard_of(self, text: str) -> bytes:
        return self._framed(self._claude.unheard_of(text))

    def _framed(self, events: bytes) -> bytes:
        payloads = [line.removeprefix(b"data: ") for line in events.split(b"\n") if line.startswith(b"data: ")]
        return b"".join(
            eventstream.event("chunk", {"bytes": base64.b64encode(payload).decode()}) for payload in payloads
        )


SPEECHES: dict[str, type[Speech]] = {
    speech.adapter: speech
    for speech in (
        Chat, Azure, Responses, Anthropic, Gemini, Interactions, Ollama, Cohere, Bedrock, BedrockInvoke,
    )
}  # fmt: skip
