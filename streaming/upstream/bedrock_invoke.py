"""Amazon Bedrock InvokeModelWithResponseStream: another dialect's events inside eventstream frames."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any, Final

from streaming.upstream import anthropic
from streaming.upstream.anthropic import Anthropic
from streaming.upstream.bedrock import Bedrock
from streaming.upstream.dialect import loads
from streaming.upstream.eventstream import EventStreamFramer
from streaming.upstream.faults import fault
from streaming.upstream.framing import ServerSentEvent
from streaming.upstream.limits import Limits
from streaming.upstream.ports import ChatRequest
from streaming.upstream.usage import count

VERSION: Final = "bedrock-2023-05-31"


def build_body(request: ChatRequest) -> dict[str, Any]:
    """
    Build the JSON of a call to a Claude model; other models are called by Converse.

    Raises:
        UpstreamError: unsupported_parameter, or what check_extras raises.
    """
    body = anthropic.build_body(request)
    del body["model"], body["stream"]  # Both are part of the address.
    return {"anthropic_version": VERSION, **body}


class InvokeFramer:
    """Unpacks the model's own events."""

    def __init__(self, max_frame_bytes: int) -> None:
        self._frames = EventStreamFramer(max_frame_bytes)

    @property
    def held_payload(self) -> bool:
        return self._frames.held_payload

    def feed(self, data: bytes) -> Iterator[ServerSentEvent]:
        for event in self._frames.feed(data):
            yield event if event.error_field is not None else self._unpacked(event)

    def finish(self) -> list[ServerSentEvent]:
        return self._frames.finish()

    def _unpacked(self, event: ServerSentEvent) -> ServerSentEvent:
        payload = loads(event.data)
        try:
            return ServerSentEvent("message", base64.b64decode(payload["bytes"], validate=True).decode())
        except (KeyError, TypeError, binascii.Error, UnicodeDecodeError) as exc:
            raise fault("malformed_stream", detail=f"a frame without bytes: {exc}") from exc


class BedrockInvoke(Anthropic):
    """One response of a Claude, Nova or Titan model; each event says by its shape whose it is."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self.framer = InvokeFramer(limits.line_bytes)
        self._nova = Bedrock(limits)
        self._nova.answer = self.answer
        self._is_claude = False

    def is_whole(self) -> bool:
        return self.ended or (not self._is_claude and self.answer.finish is not None)

    def take(self, payload: dict[str, Any], event: str) -> None:
        if "outputText" in payload:
            self._titan(payload)
        elif "type" in payload:
            self._is_claude = True
            super().take(payload, event)
        else:
            for name, value in payload.items():
                if isinstance(value, dict):
                    self._nova.take(value, name)
            self.ended, self.done = self._nova.ended, self._nova.done

    def _titan(self, payload: dict[str, Any]) -> None:
        if payload["outputText"]:
            self.answer.text(payload["outputText"])
        metrics = payload.get("amazon-bedrock-invocationMetrics")
        if metrics:
            self.answer.used({"input": count(metrics, "inputTokenCount"), "output": count(metrics, "outputTokenCount")})
        if payload.get("totalOutputTextTokenCount") is not None:  # Given with the last event only.
            # A guardrail that masks words lets the answer run to its end; one that blocks leaves no other reason.
            stopped = payload.get("amazon-bedrock-guardrailAction") == "INTERVENED"
            self.answer.finished(payload.get("completionReason") or ("guardrail_intervened" if stopped else None))
