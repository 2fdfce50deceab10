"""OpenAI Responses."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from streaming.upstream.answer import Answer
from streaming.upstream.dialect import JsonDialect, error_in
from streaming.upstream.faults import fault
from streaming.upstream.framing import SseFramer
from streaming.upstream.limits import Limits
from streaming.upstream.ports import ChatRequest, Image
from streaming.upstream.request import Fields, build_messages, check_extras, data_url, function, take_params
from streaming.upstream.responses_item import (
    CALLS,
    MESSAGES,
    REFUSAL,
    SUMMARY,
    TEXT,
    THINKING,
    ResponsesCall,
    text_of,
    texts_of,
)
from streaming.upstream.spoken import Doubt, Place, Spoken
from streaming.upstream.unicode import valid
from streaming.upstream.unread import texts_in
from streaming.upstream.usage import openai_usage

PARAMS: Final[Fields] = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_output_tokens",
    "reasoning_effort": "reasoning_effort",
}
BEGINNINGS: Final = ("created", "queued", "in_progress")
ENDS: Final = frozenset({"completed", "incomplete", "failed", "cancelled"})
# What events carry, by their names without the ending: .delta for a piece, .done for the whole.
CARRIED: Final = {
    "response.output_text": TEXT,
    "response.refusal": REFUSAL,
    "response.reasoning_summary_text": SUMMARY,
    "response.reasoning_text": THINKING,
}
DELTAS: Final = {f"{name}.delta": carried for name, carried in CARRIED.items()}


def build_body(request: ChatRequest) -> dict[str, Any]:
    """
    Build the JSON of a call.

    Raises:
        UpstreamError: unsupported_parameter, or what check_extras raises.
    """
    check_extras(request)
    params = take_params(request.params, PARAMS)
    effort = params.pop("reasoning_effort", None)
    if effort:
        params["reasoning"] = {"effort": effort, "summary": "auto"}
    if request.tools:
        # Strict schemas are a subset of JSON's, and nobody here has promised it.
        params["tools"] = [{"type": "function", **function(tool), "strict": False} for tool in request.tools]
    if request.answer_schema:
        schema = {"name": request.answer_schema.name, "schema": dict(request.answer_schema.schema), "strict": True}
        params["text"] = {"format": {"type": "json_schema", **schema}}
    messages = build_messages(request.messages, _image, "input_text")
    # Conversations are kept here; the service need not keep them, too.
    return {"model": request.model, "input": messages, "stream": True, "store": False, **params}


def _image(image: Image) -> dict[str, Any]:
    return {"type": "input_image", "image_url": data_url(image), "detail": "auto"}


class Responses(JsonDialect):
    """
    One response. It is whole when a final event was read, and what came is what the final forms say.

    A service says everything up to four times: in deltas, at the end of each part, at the end of each item, and
    in the final event; gateways leave some of it out. Each place is told once, as soon as it is known, and every
    later form is held against what was told (`spoken.py`). Where the numbers of events jump, final forms have to
    make up for what is missing.

    Items are told apart by output_index: some gateways change ids from event to event. An error event
    may be followed by response.failed, which brings the usage.

    A response in the background outlives its connection: `rejoin` goes on with another stream of it, or with the
    response itself. Nothing is then told behind a hole: a jump of the numbers ends the stream (`rejoins`).
    """

    repeats_itself = True

    def __init__(self, limits: Limits, *, rejoins: bool = False) -> None:
        self._sse = SseFramer(limits.line_bytes)
        super().__init__(self._sse, Answer())
        self.response: str | None = None  # Its id, once it is known.
        self.seen: int | None = None  # The newest sequence number.
        self.runs = False  # Asked for the response, the service said that it has not ended.
        self._rejoins = rejoins
        self._after: int | None = None
        self._line_bytes = limits.line_bytes
        self._reported: dict[str, Any] | None = None
        self._indexes: dict[Hashable, int] = {}  # Of items, by the ids that came together with them.
        self._calls: dict[Hashable, ResponsesCall] = {}
        self._strays: set[Hashable] = set()  # Items whose arguments came, but not the call itself.
        self._text, self._summary, self._thinking = Spoken(), Spoken(), Spoken()
        self._channels = {TEXT: self._text, REFUSAL: self._text, SUMMARY: self._summary, THINKING: self._thinking}
        self._unread = False  # Something came that holds text, and that is not read.
        self._doubt = Doubt()
        self._all_numbered = True  # Where some events have no number, a jump tells nothing.

    @property
    def ending(self) -> bool:
        return self._reported is not None

    def rejoin(self) -> None:
        """Go on with the bytes of another connection; what a stream repeats is passed over."""
        self.framer = self._sse = SseFramer(self._line_bytes)
        self.done = self.runs = False
        self._error = None
        self._after = self.seen

    def is_whole(self) -> bool:
        if self._reported:
            raise error_in(self._reported)
        return self.ended

    def fail(self, payload: dict[str, Any]) -> None:
        if self._sse.whole_body and payload.get("object") != "response":
            raise error_in(payload)  # What was asked for is refused, which says nothing of the response.
        self._reported = self._reported or payload

    def take(self, payload: dict[str, Any], event: str) -> None:
        kind = payload.get("type") or event
        if not self._is_news(payload, kind):
            return
        carried = DELTAS.get(kind)
        if carried is not None:
            self._delta(carried, payload)
        elif kind == "error":
            self.fail({"error": payload})
        elif payload.get("object") == "response":
            self.runs = payload.get("status") in BEGINNINGS
            self._response(payload, str(payload.get("status")))
        elif kind.count(".") == 1 and kind.startswith("response."):
            self._response(payload.get("response") or {}, kind.removeprefix("response."))
        else:
            self._form(payload, *kind.rpartition(".")[::2])

    def _is_news(self, payload: dict[str, Any], kind: str) -> bool:
        """Look at an event's number: it may have come before, or tell that events in front of it are missing."""
        number, item = payload.get("sequence_number"), payload.get("output_index")
        if isinstance(number, int):
            if self._after is not None and number <= self._after:
                return False
            if self.seen is not None and number > self.seen + 1 and self._all_numbered:
                self._jumped(number, item, kind)
            self.seen = number
        else:
            self._all_numbered = False
        if isinstance(item, int) and item > self._doubt.newest:
            self._doubt.begun(item)
        return True

    def _jumped(self, number: int, item: object, kind: str) -> None:
        if self._rejoins:
            raise fault("hole_in_answer", detail=f"event {number} came next to {self.seen}")
        self._doubt.jumped(item, begins=kind == "response.output_item.added")

    def _delta(self, carried: str, payload: dict[str, Any]) -> None:
        text = payload.get("delta")
        if text:
            self._channels[carried].came(*self._place(payload), text)
            self._tell(carried, text)

    def _form(self, payload: dict[str, Any], name: str, stage: str) -> None:
        """Take what is no delta of text: a piece of a call, or a final form of a part or an item."""
        if payload.get("output_index") is not None:
            self._indexes[_name_of_item(payload)] = payload["output_index"]
        if name == "response.output_item":
            self._item(self._place(payload)[0], payload.get("item") or {}, done=stage == "done")
        elif name in ("response.function_call_arguments", "response.custom_tool_call_input"):
            self._arguments(payload, is_piece=stage == "delta")
        elif name in CARRIED:
            text = payload.get("text") or payload.get("refusal") or ""
            self._settle([(CARRIED[name], text)], self._place(payload))
        elif name in ("response.content_part", "response.reasoning_summary_part"):
            self._settle([text_of(payload.get("part") or {})], self._place(payload))
        elif "_call" not in name:  # The service's own doings are all named as calls: searches, code, images.
            self._unread = self._unread or next(texts_in(payload), None) is not None

    def _place(self, payload: dict[str, Any]) -> tuple[Hashable, Hashable]:
        """Say where an event belongs: its item, and its part in it. Some events name the item by its id alone."""
        item, part = payload.get("output_index"), payload.get("content_index")
        if item is None:
            name = _name_of_item(payload)
            item = self._indexes.get(name, name)
        return item, (payload.get("summary_index") if part is None else part) or 0

    def _item(self, key: Hashable, item: dict[str, Any], *, done: bool) -> None:
        if item.get("type") in CALLS:
            call = self._calls.get(key) or self._open_call(key, item)
            if done:
                self._close_call(call, item)
            said = call.said
        else:
            parts = list(texts_of(item))
            self._settle(parts, (key,))
            reasoned = key in self._summary or key in self._thinking
            said = any(text for _, text in parts) or not (reasoned or item.get("type") in MESSAGES)
        if done and isinstance(key, int):
            self._doubt.closed(key, whole=said)

    def _settle(self, parts: list[tuple[str, str]], place: Place) -> None:
        """Hold final forms against what came for their place, and tell what is missing."""
        reasoning = ((THINKING, self._thinking, self._summary), (SUMMARY, self._summary, self._thinking))
        for carried, channel, other in reasoning:
            # Reasoning comes as itself or as a summary; where it came as one, the other says nothing new.
            if channel.spoke_at(place) or not other.spoke_at(place):
                self._tell(carried, channel.missing("".join(text for said, text in parts if said == carried), place))
        texts = [(carried, text) for carried, text in parts if text and carried in (TEXT, REFUSAL)]
        rest = self._text.missing("".join(text for _, text in texts), place)
        self._tell(TEXT if any(carried == TEXT for carried, _ in texts) else REFUSAL, rest)

    def _tell(self, carried: str, text: str) -> None:
        match carried:
            case "text":
                self.answer.text(text)
            case "refusal":
                self.answer.refusal(text)
            case _:
                self.answer.reasoning(text)

    def _open_call(self, key: Hashable, item: dict[str, Any]) -> ResponsesCall:
        call = self._calls[key] = ResponsesCall(len(self._calls), item)
        self._strays.discard(key)
        self.answer.tool(id=item.get("call_id"), index=call.number, name=call.name, arguments=None)
        return call

    def _arguments(self, payload: dict[str, Any], *, is_piece: bool) -> None:
        key = self._place(payload)[0]
        call = self._calls.get(key)
        if call is None:
            self._strays.add(key)
        elif not is_piece:
            self._close_call(call, payload)
        elif payload.get("delta"):
            piece = call.piece(payload["delta"])
            self.answer.tool(id=None, index=call.number, name=None, arguments=piece)

    def _close_call(self, call: ResponsesCall, form: dict[str, Any]) -> None:
        piece = call.settle(form)
        self.answer.tool(id=None, index=call.number, name=form.get("name"), arguments=piece)

    def _response(self, response: dict[str, Any], state: str) -> None:
        """Take the response itself, as it is in an event of this name, or was asked for."""
        if response.get("id"):
            self.response = self.response or valid(str(response["id"]))
        if response.get("usage"):
            self.answer.used(openai_usage(response["usage"]))
        # At its end the response's own word is more telling than the event's.
        status = response.get("status") if response.get("status") in ENDS else state
        if status in ENDS and state not in BEGINNINGS:
            self._end(response, status)

    def _end(self, response: dict[str, Any], status: str) -> None:
        self.end()
        if response.get("error") or status == "failed":
            self.fail({"error": response.get("error") or {"type": "failed"}})
        elif status != "cancelled":
            self._check(response, status)
        reason = (response.get("incomplete_details") or {}).get("reason")
        self.answer.finish = f"{status}:{reason}" if reason else status

    def _check(self, response: dict[str, Any], status: str) -> None:
        """
        Hold the whole response against all that came.

        Raises:
            UpstreamError: hole_in_answer; something is missing, or may be, and nothing tells what it was.
        """
        output = response.get("output") or []
        calls = [item for item in output if item.get("type") in CALLS]
        parts = [part for item in output for part in texts_of(item)]
        known = list(self._calls.values())
        self._settle(parts or [(TEXT, response.get("output_text") or "")], ())
        for number, item in enumerate(calls):
            self._close_call(known[number] if number < len(known) else self._open_call(("output", number), item), item)
        says_all = bool(output) and len(calls) >= len(known) and (not self._text or any(text for _, text in parts))
        if (self._doubt or self._strays or self._unread) and not says_all:
            raise fault("hole_in_answer", detail="events are missing or unread, and the response does not repeat them")
        if status == "completed" and not all(call.said for call in self._calls.values()):
            raise fault("hole_in_answer", detail="the arguments of a call never came")
        unread = self._unread or any(item.get("text") or item.get("content") for item in output)
        if unread and not (self._calls or any(self._channels.values())):
            raise fault("hole_in_answer", detail="nothing that came could be read")


def _name_of_item(payload: dict[str, Any]) -> Hashable:
    return payload.get("item_id") or (payload.get("item") or {}).get("id")
