"""OpenAI Chat Completions, and the many services that speak it with an accent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from streaming.upstream.answer import Answer
from streaming.upstream.dialect import JsonDialect, error_in
from streaming.upstream.framing import SseFramer
from streaming.upstream.limits import Limits
from streaming.upstream.ports import ChatRequest
from streaming.upstream.request import (
    EVERYTHING,
    IMAGES,
    JSON_SCHEMA,
    REASONING_EFFORTS,
    TOOLS,
    Fields,
    build_messages,
    build_tools,
    check_extras,
    image_url_part,
    one_of,
    take_params,
)
from streaming.upstream.think import ThinkTags
from streaming.upstream.tools import ToolCalls
from streaming.upstream.usage import openai_usage

PARAMS: Final[Fields] = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_tokens",
    "seed": "seed",
    "stop": "stop",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "reasoning_effort": "reasoning_effort",
}


@dataclass(frozen=True, slots=True)
class Accent:
    """
    Where a relative differs in ways that its stream cannot tell us. All other differences are read from the stream.

    `params` maps our words to the service's fields; what is absent is refused before the call.
    """

    params: Fields = field(default_factory=lambda: PARAMS)
    able: frozenset[str] = EVERYTHING  # Of images, tools and JSON schemas.
    asks_for_usage: bool = True  # Send stream_options; some older servers refuse it.
    think_tags: bool = False  # The model writes its reasoning between tags in the text.
    starts_in_reasoning: bool = False  # Its template opens the tag, so only the closing one comes.
    cumulative_text: bool = False  # Each piece repeats the whole text so far.
    reasoning_filler: str = ""  # A piece of reasoning that stands for "still thinking".
    repeats_whole_calls: bool = False  # A whole tool call may come twice.


def _without(*names: str, **renamed: str) -> Fields:
    return {ours: renamed.get(ours, theirs) for ours, theirs in PARAMS.items() if ours not in names}


ACCENTS: Final[dict[str, Accent]] = {
    "": Accent(),
    "openai": Accent(params=_without(max_tokens="max_completion_tokens")),
    "deepseek": Accent(params=_without("seed", "reasoning_effort"), able=frozenset({TOOLS})),
    "groq": Accent(params=_without(max_tokens="max_completion_tokens")),
    "mistral": Accent(params=_without("reasoning_effort", seed="random_seed"), asks_for_usage=False),
    "perplexity": Accent(params=_without("seed", "stop"), able=frozenset({IMAGES, JSON_SCHEMA}), think_tags=True),
    "think_tags": Accent(think_tags=True),
    "starts_in_reasoning": Accent(think_tags=True, starts_in_reasoning=True),
    "cumulative": Accent(cumulative_text=True),
    "xai": Accent(reasoning_filler="Thinking... ", repeats_whole_calls=True),
}


def build_body(request: ChatRequest, accent: Accent = Accent()) -> dict[str, Any]:
    """
    Build the JSON of a call.

    Raises:
        UpstreamError: unsupported_parameter, or what check_extras raises.
    """
    check_extras(request, accent.able)
    params = take_params(request.params, accent.params, {"reasoning_effort": one_of(REASONING_EFFORTS)})
    messages = build_messages(request.messages, image_url_part)
    body: dict[str, Any] = {"model": request.model, "messages": messages, "stream": True}
    if accent.asks_for_usage:
        body["stream_options"] = {"include_usage": True}
    if request.answer_schema:
        named = {"name": request.answer_schema.name, "schema": dict(request.answer_schema.schema), "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    return {**body, **build_tools(request.tools), **params}


class OpenAIChat(JsonDialect):
    """
    One response. It is whole when a finish reason was given, or `[DONE]`.

    Usage and errors may follow the finish reason, so reading goes on to `[DONE]` or the end of the bytes.
    """

    def __init__(self, limits: Limits, accent: Accent = ACCENTS[""]) -> None:
        think = ThinkTags(starts_inside=accent.starts_in_reasoning) if accent.think_tags else None
        tools = ToolCalls(repeats_whole_calls=accent.repeats_whole_calls, drifts=True)
        answer = Answer(think=think, tools=tools)
        self._sse = SseFramer(limits.line_bytes)
        super().__init__(self._sse, answer)
        self._filler = accent.reasoning_filler
        self._cumulative = accent.cumulative_text
        self._seen = ""

    def is_whole(self) -> bool:
        return self.done or self.answer.finish is not None

    def take(self, payload: dict[str, Any], event: str) -> None:  # noqa: ARG002
        choices = payload.get("choices")
        if choices:
            for choice in choices:
                # We ask for one choice; another one's text must never be mixed into it.
                if not choice.get("index"):
                    self._choice(choice)
        usage = payload.get("usage")
        if usage:
            self.answer.used(openai_usage(usage))
        elif "x_groq" in payload:
            self._usage_in(payload["x_groq"])

    def fail(self, payload: dict[str, Any]) -> None:
        self._usage_in(payload)
        raise error_in(payload)

    def _usage_in(self, holder: Mapping[str, Any] | None) -> None:
        usage = holder.get("usage") if holder else None
        if usage:
            self.answer.used(openai_usage(usage))

    def _choice(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta")
        if delta:
            self._delta(delta, choice.get("token_ids"))
        elif choice.get("text"):
            self._text(choice["text"], choice.get("token_ids"))
        elif self._sse.whole_body and choice.get("message"):
            self._delta(choice["message"], None)
        if choice.get("error"):
            self.fail(choice)
        finish = choice.get("finish_reason")
        if finish:
            self.answer.finish = str(finish)
        if "usage" in choice:
            self._usage_in(choice)

    def _delta(self, delta: dict[str, Any], tokens: list[int] | None) -> None:
        # One of the two names; some services send the same text under both.
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if reasoning and reasoning != self._filler:
            self.answer.reasoning(reasoning)
        content = delta.get("content")
        if isinstance(content, list):
            self._parts(content)
        elif content or tokens:
            self._text(content or "", tokens)
        if delta.get("refusal"):
            self.answer.refusal(delta["refusal"])
        for call in delta.get("tool_calls") or ():
            function = call.get("function") or {}
            self.answer.tool(
                id=call.get("id"), index=call.get("index"),
                name=function.get("name"), arguments=function.get("arguments"),
            )  # fmt: skip
        if delta.get("function_call"):
            function = delta["function_call"]
            self.answer.tool(id=None, index=0, name=function.get("name"), arguments=function.get("arguments"))

    def _text(self, text: str, tokens: list[int] | None) -> None:
        if self._cumulative:
            # Only where it is known: "ha" before "haha" may be a delta, too.
            whole, text = text, text.removeprefix(self._seen)
            self._seen = whole or self._seen
        self.answer.text(text, tuple(tokens or ()))

    def _parts(self, parts: list[dict[str, Any]]) -> None:
        for part in parts:
            match part.get("type"):
                case "text":
                    self.answer.text(part["text"])
                case "thinking":
                    self._reasoning_parts(part["thinking"])
                case "reasoning":
                    self._reasoning_parts(part["summary"])
                case _:
                    pass  # References and the like: nothing to show.

    def _reasoning_parts(self, parts: str | list[dict[str, Any]]) -> None:
        texts = [parts] if isinstance(parts, str) else [part.get("text", "") for part in parts]
        self.answer.reasoning("".join(texts))
