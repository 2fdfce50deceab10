"""Payloads as the service of a dialect frames them, and the dialect that reads them."""

from __future__ import annotations

import json
from typing import Any

from streaming.upstream.dialects import DIALECTS
from streaming.upstream.http import Dialect
from streaming.upstream.limits import Limits
from streaming.upstream.llamacpp import LlamaCpp
from tests.streaming.upstream import eventstream


def opened(dialect: str) -> Dialect:
    return LlamaCpp(Limits()) if dialect == "llamacpp" else DIALECTS[dialect].open(Limits())


def sent(dialect: str, payload: Any) -> bytes:
    """
    Frame a payload; a text is one that is no JSON.

    Server-sent events are named by their payload's type. Bedrock's payload is the only member of an object, under the
    name of its event.
    """
    if dialect == "bedrock":
        ((event, content),) = payload.items()
        return eventstream.event(event, content)
    text = payload if isinstance(payload, str) else json.dumps(payload)
    if dialect == "ollama":
        return f"{text}\n".encode()
    name = (payload.get("type") or payload.get("event_type")) if isinstance(payload, dict) else None
    return ((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode()
