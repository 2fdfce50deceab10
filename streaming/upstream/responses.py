"""OpenAI Responses."""

from __future__ import annotations

import json
from typing import Any, Final

from streaming.upstream.answer import Answer
from streaming.upstream.dialect import JsonDialect, error_in
from streaming.upstream.framing import SseFramer
from streaming.upstream.limits import Limits
from streaming.upstream.ports import ChatRequest, Image
from streaming.upstream.request import Fields, build_messages, check_extras, data_url, function, take_params
from streaming.upstream.unicode import valid
from streaming.upstream.usage import openai_usage

PARAMS: Final[Fields] = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_output_tokens",
    "reasoning_effort": "reasoning_effort",
}
FINAL: Final = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})


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
    One response. It is whole when a final event was read.

    Items are told apart by output_index: some gateways change ids from event to event. An error event
    may be followed by response.failed, which brings the usage.

    A response in the background outlives its connection: `rejoin` goes on with another stream of it.
    """

    def __init__(self, limits: Limits) -> None:
        super().__init__(SseFramer(limits.line_bytes), Answer())
        self.response: str | None = None  # Its id, once it is known.
        self.seen: int | None = None  # The newest sequence number.
        self._after: int | None = None
        self._line_bytes = limits.line_bytes
        self._reported: dict[str, Any] | None = None
        self._calls: dict[int | None, _Call] = {}
        self._spoken: set[tuple[Any, Any, Any]] = set()  # Parts whose text came in deltas.

    @property
    def ending(self) -> bool:
        return self._reported is not None

    def rejoin(self) -> None:
        """Go on with the bytes of another stream of the same response; what it repeats is passed over."""
        self.framer = SseFramer(self._line_bytes)
        self._error = None
        self._after = self.seen

    def is_whole(self) -> bool:
        if self._reported:
            raise error_in(self._reported)
        return self.done

    def fail(self, payload: dict[str, Any]) -> None:
        self._reported = self._reported or payload

    def take(self, payload: dict[str, Any], event: str) -> None:
        kind = payload.get("type", event)
        number = payload.get("sequence_number")
        if isinstance(number, int):
            if self._after is not None and number <= self._after:
                return
            self.seen = number
        if kind == "response.created":
            given = payload["response"].get("id")
            self.response = valid(str(given)) if given else None
        if kind in FINAL:
            self._end(kind, payload["response"])
        elif kind == "error":
            self.fail({"error": payload})
        elif kind.startswith("response.output_item."):
            self._item(payload.get("output_index"), payload["item"], done=kind.endswith(".done"))
        elif kind.startswith(("response.function_call_arguments.", "response.custom_tool_call_input.")):
            self._arguments(payload, kind)
        elif payload.get("object") == "response":
            self._whole(payload)
        else:
            self._text(payload, kind)

    def _text(self, payload: dict[str, Any], kind: str) -> None:
        part = (
            payload.get("output_index"),
            payload.get("content_index", payload.get("summary_index")),
            kind.rpartition(".")[0],
        )
        if kind.endswith(".delta"):
            text = payload.get("delta")
            self._spoken.add(part)
        else:
            # Only where a gateway sends no deltas: then the whole text is news.
            text = None if part in self._spoken else payload.get("text", payload.get("refusal"))
        if not text:
            return
        match part[2]:
            case "response.output_text":
                self.answer.text(text)
            case "response.refusal":
                self.answer.refusal(text)
            case "response.reasoning_summary_text" | "response.reasoning_text":
                self.answer.reasoning(text)
            case _:
                pass  # Searches, code, images: the service's own doings.

    def _item(self, index: int | None, item: dict[str, Any], *, done: bool) -> None:
        kind = item.get("type")
        if kind not in ("function_call", "custom_tool_call"):
            return
        call = self._calls.get(index)
        if call is None:
            call = self._calls[index] = _Call(custom=kind == "custom_tool_call")
            self.answer.tool(id=item.get("call_id"), index=index, name=item.get("name"), arguments=None)
        if done:
            self._complete(index, call, item.get("input" if call.custom else "arguments") or "")

    def _arguments(self, payload: dict[str, Any], kind: str) -> None:
        index = payload.get("output_index")
        call = self._calls.get(index)
        if call is None:
            return
        if kind.endswith(".delta"):
            self._piece(index, call.piece(payload["delta"]))
        else:
            self._complete(index, call, payload.get("input" if call.custom else "arguments") or "")

    def _complete(self, index: int | None, call: _Call, whole: str) -> None:
        self._piece(index, call.rest(whole))

    def _piece(self, index: int | None, piece: str) -> None:
        if piece:
            self.answer.tool(id=None, index=index, name=None, arguments=piece)

    def _end(self, kind: str, response: dict[str, Any]) -> None:
        if response.get("usage"):
            self.answer.used(openai_usage(response["usage"]))
        self.done = True
        if response.get("error") or kind == "response.failed":
            self.fail({"error": response.get("error") or {"type": "failed"}})
        status = response.get("status") or kind.removeprefix("response.")
        reason = (response.get("incomplete_details") or {}).get("reason")
        self.answer.finish = f"{status}:{reason}" if reason else status

    def _whole(self, response: dict[str, Any]) -> None:
        """The service answered without streaming."""
        for index, item in enumerate(response.get("output") or ()):
            self._item(index, item, done=True)
            for part in item.get("content") or () if item.get("type") == "message" else ():
                self._text({**part, "output_index": index}, f"response.{part.get('type')}.done")
        self._end(f"response.{response.get('status')}", response)


class _Call:
    """The arguments of one call, from deltas, or from a later event if no deltas came."""

    def __init__(self, *, custom: bool) -> None:
        self.custom = custom
        self._begun = False
        self._ended = False

    def piece(self, delta: str) -> str:
        # The input of a custom tool is any text. Ours are JSON objects, so it becomes one, as it comes.
        first, self._begun = not self._begun, True
        return ('{"input": "' if first else "") + json.dumps(delta, ensure_ascii=False)[1:-1] if self.custom else delta

    def rest(self, whole: str) -> str:
        if self._ended:
            return ""
        self._ended = True
        missing = "" if self._begun else self.piece(whole)
        return missing + '"}' if self.custom else missing
