"""Builds frames of application/vnd.amazon.eventstream, for tests. Written from the format's description."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any


def event(kind: str, payload: Any) -> bytes:
    return frame({":event-type": kind, ":content-type": "application/json", ":message-type": "event"}, payload)


def exception(kind: str, payload: Any) -> bytes:
    return frame({":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}, payload)


def frame(headers: dict[str, str], payload: Any, *, before: bytes = b"") -> bytes:
    """`before`: headers that are encoded already."""
    body = json.dumps(payload).encode()
    head = before + b"".join(
        struct.pack(">B", len(name)) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", 16 + len(head) + len(body), len(head))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + body
    return message + struct.pack(">I", zlib.crc32(message))
