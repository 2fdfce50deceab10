"""OpenAI Chat Completions, and the many services that speak it with an accent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from streaming.upstream.answer import Answer
from streaming.upstream.dialect import JsonDialect, error_in
from streaming.upstream.framing import SseFramer
from streaming.upstream.limits import Limits
from streaming.upstream.numbers import OnlyChoice
from streaming.upstream.parts import take_content, take_reasoning
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
from streaming.upstream.tools import ToolCalls, name_and_arguments
from streaming.upstream.unread import listed
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
# Where a delta holds reasoning, the first that says something; REPEATED are lists, and all that some services send.
REASONING: Final = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
REPEATED: Final = ("reasoning_details", "thinking_blocks", "reasoning_steps")
MEMBERS: Final = frozenset({"role", "content", "refusal", "tool_calls", "function_call", *REASONING, *REPEATED})


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

    Usage and errors may follow the finish reason, so reading goes on to `[DONE]` or the end of the bytes. A `message`
    is the whole answer so far, and may stand in the place of deltas or beside them.
    """

    done_is_its_end = True

    def __init__(self, limits: Limits, accent: Accent = ACCENTS[""]) -> None:
        think = ThinkTags(starts_inside=accent.starts_in_reasoning) if accent.think_tags else None
        tools = ToolCalls(repeats_whole_calls=accent.repeats_whole_calls, drifts=True)
        answer = Answer(think=think, tools=tools)
        super().__init__(SseFramer(limits.line_bytes), answer)
        self._choices = OnlyChoice("finish_reason")
        self._filler = accent.reasoning_filler
        self._cumulative = accent.cumulative_text
        self._seen = ""

    def is_whole(self) -> bool:
        self._choices.close(self.answer, self._choice)
        return self.ended or self.answer.finish is not None

    def take(self, payload: dict[str, Any], event: str) -> None:  # noqa: ARG002
        choices = payload.get("choices")
        if choices:
            only = choices[0] if choices.__class__ is list else None
            if only and (only.get("index") or 0) == self._choices.settled and len(choices) == 1:
                self._choice(only)
            else:
                self._several(choices)
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

    def _several(self, choices: Any) -> None:
        admitted = self._choices.admit(choices, finished=self.answer.finish is not None)
        for choice in admitted:
            self._choice(choice)
        if not admitted:
            self.answer.passed_over()

    def _choice(self, choice: dict[str, Any]) -> None:
        answer = self.answer
        before = answer.taken
        delta = choice.get("delta")
        if delta:
            self._delta(delta, choice.get("token_ids"))
        if answer.taken == before or "message" in choice or "text" in choice:
            self._elsewhere(choice, said=answer.taken != before)
        if choice.get("error"):
            self.fail(choice)
        finish = choice.get("finish_reason")
        if finish:
            answer.finished(finish)
        if "usage" in choice:
            self._usage_in(choice)

    def _elsewhere(self, choice: dict[str, Any], *, said: bool) -> None:
        """Read what stands in no delta; `said`: there is one too, which it may repeat."""
        text, message = choice.get("text"), choice.get("message")
        if text and not said:
            self._delta(text, choice.get("token_ids"))
        elif text and not self.answer.ends_with(text):
            self.answer.unread({"text": text})
        # Beside deltas it often holds no more than they did, so it is compared once, at the end.
        if message and (not said or choice.get("finish_reason")):
            self.reread(lambda: self._delta(message, None))

    def _delta(self, delta: Any, tokens: list[int] | None) -> None:
        if delta.__class__ is not dict:
            delta = {"content": delta}
        content = delta.get("content")
        if content.__class__ is str and (len(delta) == 1 or ("role" in delta and len(delta) == 2)):
            if tokens or self._cumulative:
                self._text(content, tokens)
            elif content:
                self.answer.text(content)
        else:
            self._members(delta, content, tokens)

    def _members(self, delta: dict[str, Any], content: Any, tokens: list[int] | None) -> None:
        # One of the names; some services send the same text under several.
        reasoning = next((delta[name] for name in (*REASONING, *REPEATED) if delta.get(name)), None)
        if reasoning and reasoning == self._filler:
            self.answer.passed_over()
        else:
            take_reasoning(self.answer, reasoning)
        if content.__class__ is str or (tokens and not content):
            if content or tokens:
                self._text(content or "", tokens)
        else:
            take_content(self.answer, content)
        if delta.get("refusal"):
            self.answer.refusal(delta["refusal"])
        for call in listed(delta.get("tool_calls")):
            self._call(call, call.get("index"))
        if delta.get("function_call"):
            self._call(delta["function_call"], 0)
        if delta.get("error"):
            self.fail(delta)
        if not delta.keys() <= MEMBERS:
            self.answer.unread({name: delta[name] for name in delta.keys() - MEMBERS})

    def _call(self, call: dict[str, Any], index: Any) -> None:
        name, arguments = name_and_arguments(call)
        if not (name or arguments):
            self.answer.unread(call)
        self.answer.tool(id=call.get("id"), index=index, name=name, arguments=arguments)

    def _text(self, text: str, tokens: list[int] | None) -> None:
        if self._cumulative:
            # Only where it is known: "ha" before "haha" may be a delta, too.
            whole, text = text, text.removeprefix(self._seen)
            self._seen = whole or self._seen
        self.answer.text(text, tuple(tokens or ()))
