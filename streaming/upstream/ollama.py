"""Ollama's own /api/chat and /api/generate."""

from __future__ import annotations

from typing import Any, Final

from streaming.upstream.answer import Answer
from streaming.upstream.dialect import JsonDialect
from streaming.upstream.framing import NdjsonFramer
from streaming.upstream.limits import Limits
from streaming.upstream.parts import take_content, take_reasoning
from streaming.upstream.ports import ChatRequest, Message
from streaming.upstream.request import Fields, as_base64, build_tools, check_extras, one_of, take_params
from streaming.upstream.tools import name_and_arguments
from streaming.upstream.unread import listed
from streaming.upstream.usage import count

PARAMS: Final[Fields] = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "num_predict",
    "seed": "seed",
    "stop": "stop",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "reasoning_effort": "reasoning_effort",
}


def build_body(request: ChatRequest) -> dict[str, Any]:
    """
    Build the JSON of a call.

    Raises:
        UpstreamError: unsupported_parameter, or what check_extras raises.
    """
    check_extras(request)
    options = take_params(request.params, PARAMS, {"reasoning_effort": one_of(("none", "low", "medium", "high"))})
    messages = [_message(message) for message in request.messages]
    body: dict[str, Any] = {"model": request.model, "messages": messages, "stream": True, **build_tools(request.tools)}
    effort = options.pop("reasoning_effort", None)
    if effort:
        body["think"] = effort if effort != "none" else False
    if request.answer_schema:
        body["format"] = dict(request.answer_schema.schema)
    return {**body, **({"options": options} if options else {})}


def _message(message: Message) -> dict[str, Any]:
    images = {"images": [as_base64(image) for image in message.images]} if message.images else {}
    return {"role": message.role, "content": message.content, **images}


class Ollama(JsonDialect):
    """One response. It is whole when a line said done. Tool calls come whole and without ids."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(NdjsonFramer(limits.line_bytes), Answer())

    def take(self, payload: dict[str, Any], event: str) -> None:  # noqa: ARG002
        message = payload.get("message") or {}
        if isinstance(message, str):
            message = {"content": message}
        done = payload.get("done")
        if done and self._repeats(message.get("content") or payload.get("response")):
            self.reread(lambda: self._message(message, payload))
        else:
            self._message(message, payload)
        if done:
            self.answer.used({"input": count(payload, "prompt_eval_count"), "output": count(payload, "eval_count")})
            self.answer.finished(payload.get("done_reason") or "stop")
            self.end()

    def _repeats(self, text: Any) -> bool:
        """Say whether the last text is all of it, and no piece more."""
        said = self.answer.said
        return isinstance(text, str) and bool(said) and text.startswith(said)

    def _message(self, message: dict[str, Any], payload: dict[str, Any]) -> None:
        thinking = message.get("thinking") or payload.get("thinking")
        if thinking:
            take_reasoning(self.answer, thinking)
        text, response = message.get("content"), payload.get("response")
        if text or response:
            take_content(self.answer, text or response)
        if text and response and text != response:
            self.answer.unread({"response": response})
        calls = message.get("tool_calls")
        for call in listed(calls) if calls else ():
            name, arguments = name_and_arguments(call)
            self.answer.whole_call(id=call.get("id"), name=name, arguments=arguments)
