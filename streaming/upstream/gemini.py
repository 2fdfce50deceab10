"""Gemini streamGenerateContent, of the Gemini API and of Vertex AI."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any, Final

from streaming.upstream.answer import Answer
from streaming.upstream.dialect import JsonDialect
from streaming.upstream.faults import fault
from streaming.upstream.finish import FINISHES, plain
from streaming.upstream.json_array import SseOrArrayFramer
from streaming.upstream.limits import Limits
from streaming.upstream.numbers import OnlyChoice
from streaming.upstream.ports import ChatRequest, Message
from streaming.upstream.request import Fields, as_base64, check_extras, function, one_of, split_system, take_params
from streaming.upstream.tools import name_and_arguments
from streaming.upstream.unread import listed
from streaming.upstream.usage import added, count

PARAMS: Final[Fields] = {
    "temperature": "temperature",
    "top_p": "topP",
    "max_tokens": "maxOutputTokens",
    "seed": "seed",
    "stop": "stopSequences",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    "reasoning_effort": "reasoning_effort",
}
# Version 2.5 takes numbers of tokens, later ones take words; both together are refused.
BUDGETS: Final = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24576}
LEVELS: Final = ("minimal", "low", "medium", "high")
# Parts that are calls, or the service's own doings.
OTHERS: Final = frozenset(
    {
        "functionCall", "functionResponse", "executableCode", "codeExecutionResult", "inlineData", "fileData",
        "toolCall", "toolResponse", "videoMetadata",
    }
)  # fmt: skip
# Values under enum-encoding=int that the Gemini API and Vertex AI number alike.
FINISH_NUMBERS: Final = {1: "STOP", 2: "MAX_TOKENS", 3: "SAFETY", 4: "RECITATION"}
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]")
# Far beyond any list a model writes, far below what would hurt.
_LONGEST_LIST: Final = 10_000


def build_body(request: ChatRequest) -> dict[str, Any]:
    """
    Build the JSON of a call.

    Raises:
        UpstreamError: unsupported_parameter, or what check_extras raises.
    """
    check_extras(request)
    budgets = "gemini-2.5" in request.model
    efforts = one_of(BUDGETS if budgets else LEVELS)
    config = take_params(request.params, PARAMS, {"reasoning_effort": efforts})
    effort = config.pop("reasoning_effort", None)
    if effort:
        amount = {"thinkingBudget": BUDGETS[effort]} if budgets else {"thinkingLevel": effort}
        config["thinkingConfig"] = {"includeThoughts": effort != "none", **amount}
    if request.answer_schema:
        config |= {"responseMimeType": "application/json", "responseJsonSchema": dict(request.answer_schema.schema)}
    system, turns = split_system(request.messages)
    roles = {"user": "user", "assistant": "model"}
    body: dict[str, Any] = {"contents": [{"role": roles[turn.role], "parts": _parts(turn)} for turn in turns]}
    if system:
        body["systemInstruction"] = {"parts": [{"text": system}]}
    if request.tools:
        declared = [function(tool, "parametersJsonSchema") for tool in request.tools]
        body["tools"] = [{"functionDeclarations": declared}]
    return {**body, **({"generationConfig": config} if config else {})}


def _parts(turn: Message) -> list[dict[str, Any]]:
    images = [{"inlineData": {"mimeType": image.media_type, "data": as_base64(image)}} for image in turn.images]
    return [*images, *([{"text": turn.content}] if turn.content or not images else [])]


def authorise(key: str, url: str, content: bytes) -> dict[str, str]:  # noqa: ARG001
    return {"x-goog-api-key": key}


class Gemini(JsonDialect):
    """
    One response. It is whole when the stream ended and a finish reason, or a blocked prompt, was seen.

    A finish reason may come early from translating gateways, so nothing but the end of the bytes ends it.
    """

    def __init__(self, limits: Limits) -> None:
        super().__init__(SseOrArrayFramer(limits.line_bytes), Answer())
        self._choices = OnlyChoice("finishReason")
        self._open: dict[str, Any] | None = None  # Arguments of a call that comes in pieces.

    def is_whole(self) -> bool:
        self._choices.close(self.answer, self._candidate)
        self._leave_open()
        return self.answer.finish is not None

    def take(self, payload: dict[str, Any], event: str) -> None:  # noqa: ARG002
        candidates = payload.get("candidates")
        if candidates:
            admitted = self._choices.admit(candidates, finished=self.answer.finish is not None)
            for candidate in admitted:
                self._candidate(candidate)
            if not admitted:
                self.answer.passed_over()
        blocked = (payload.get("promptFeedback") or {}).get("blockReason")
        if blocked:
            known = FINISHES.get(plain(str(blocked))) == "content_filter"
            self.answer.finished(blocked if known else "blocked")
        if payload.get("usageMetadata"):
            self.answer.used(_usage(payload["usageMetadata"]))

    def _candidate(self, candidate: dict[str, Any]) -> None:
        content = candidate.get("content")
        for part in listed(content.get("parts") if isinstance(content, dict) else content):
            self._part(part if isinstance(part, dict) else {"text": part})
        finish = candidate.get("finishReason")
        if finish:
            self.answer.finished(FINISH_NUMBERS.get(finish, finish))

    def _part(self, part: dict[str, Any]) -> None:
        calls = part.get("functionCall", part.get("function_call"))
        if calls is not None:
            # An empty one ends the call that is open.
            for call in listed(calls) if calls else [{}]:
                self._call(call)
        if part.get("text"):
            (self.answer.reasoning if part.get("thought") else self.answer.text)(part["text"])
        elif calls or not part.keys().isdisjoint(OTHERS):
            self.answer.passed_over()
        else:
            self.answer.unread(part)

    def _call(self, call: dict[str, Any]) -> None:
        name, arguments = name_and_arguments(call)
        if name or arguments:
            self._begin(call, name, arguments)
        if self._open is None:
            return
        for piece in listed(call.get("partialArgs")):
            put(self._open, piece["jsonPath"], _value(piece))
        if not call.get("willContinue"):
            arguments, self._open = self._open, None
            self._arguments(json.dumps(arguments, ensure_ascii=False))

    def _begin(self, call: dict[str, Any], name: str | None, arguments: Any) -> None:
        self._leave_open()
        if call.get("willContinue") and name:
            self.answer.tool(id=call.get("id"), index=None, name=name, arguments=arguments)
            self._open = {}
        else:
            self.answer.whole_call(id=call.get("id"), name=name, arguments=arguments)

    def _leave_open(self) -> None:
        """Nobody closed the call. What there is of it is shown, and is not an object, so that nothing runs it."""
        if self._open is not None:
            self._arguments(json.dumps(self._open, ensure_ascii=False).removesuffix("}"))
            self._open = None

    def _arguments(self, arguments: str) -> None:
        self.answer.tool(id=None, index=None, name=None, arguments=arguments)


def put(target: dict[str, Any], path: str, value: Any) -> None:
    """
    Put a value at a JSONPath such as $.a.b[0]. Text is joined to the text that is there.

    Raises:
        UpstreamError: malformed_stream, for a path that leads nowhere.
    """
    steps = [name or quoted or int(number) for name, number, quoted in _STEP.findall(path)]
    if not steps or not all(isinstance(step, str) or step < _LONGEST_LIST for step in steps):
        raise fault("malformed_stream", detail=f"path {path!r}")
    place: Any = target
    for step, following in pairwise(steps):
        _make_room(place, step)
        place[step] = place[step] if place[step] is not None else ([] if isinstance(following, int) else {})
        place = place[step]
    _make_room(place, steps[-1])
    before = place[steps[-1]]
    place[steps[-1]] = before + value if isinstance(before, str) and isinstance(value, str) else value


def _make_room(place: Any, step: str | int) -> None:
    if isinstance(step, int):
        place.extend([None] * (step + 1 - len(place)))
    else:
        place.setdefault(step, None)


def _value(piece: dict[str, Any]) -> Any:
    return next((piece[name] for name in ("stringValue", "numberValue", "boolValue") if name in piece), None)


def _usage(raw: dict[str, Any]) -> dict[str, int | None]:
    reasoning = count(raw, "thoughtsTokenCount")
    return {
        "input": added(count(raw, "promptTokenCount"), count(raw, "toolUsePromptTokenCount")),
        "output": added(count(raw, "candidatesTokenCount"), reasoning),
        "cached": count(raw, "cachedContentTokenCount"),
        "reasoning": reasoning,
    }
