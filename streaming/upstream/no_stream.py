"""What came under a stream's type and is none: web pages, JSON of another kind, plain words, compressed bytes. Pure."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from streaming.errors import UpstreamError
from streaming.upstream.eventstream import may_be_frame
from streaming.upstream.faults import reported
from streaming.upstream.reports import Report, report_in
from streaming.upstream.unicode import REPLACEMENT

# So much of a body tells what it is.
HEAD_BYTES: Final = 16 * 1024
# How a call ends whose dialect could not make anything of the bytes.
UNREAD: Final = frozenset({"incomplete_stream", "malformed_stream", "line_too_long"})
_BLANK: Final = b" \t\r\n\xef\xbb\xbf"
_FIELD: Final = re.compile(rb":|(?:data|event|id|retry)(?::|\r|\n|$)")
# What may become a field, or the frame of an event stream, and was cut before one can tell.
_FIELDS: Final = (b"data:", b"event:", b"id:", b"retry:")
_DATA: Final = re.compile(rb"^data: ?([^\r\n]+)", re.MULTILINE)
# Members of which answers are made, in any dialect. `type` and `message` are errors' too, where a text stands there.
_ANSWER: Final = frozenset(
    {
        "choices", "candidates", "promptFeedback", "usageMetadata", "output", "outputs", "steps", "content", "delta",
        "done", "event_type", "interaction", "response", "tokens", "index", "item", "usage",
    }
)  # fmt: skip
_EVENT: Final = re.compile(r"message|content|response|tool|citation|ping|step|interaction")
_MAGIC: Final = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\x78\x9c", "zlib"), (b"\x89PNG", "PNG"))
_SHOWN_BYTES: Final = 32


def no_stream(head: bytes, kind: str) -> UpstreamError | None:
    """
    Say what a body is of which nothing could be read, by its head; None where it may be a stream that broke off.

    `kind` is its content type. An error that JSON states is told as that error.
    """
    body = head.lstrip(_BLANK)
    is_sse = _FIELD.match(body) is not None or any(field.startswith(body) for field in _FIELDS)
    event = _DATA.search(body) if is_sse else None
    is_json = body[:1] in (b"{", b"[") or event is not None
    document = _document(event[1] if event else body) if is_json else None
    if may_be_frame(head) or (document is None and (is_json or is_sse)):
        return None
    if isinstance(document, dict) and _is_of_an_answer(document):
        return None
    names, words, _ = report_in(document) or Report()
    if event and not (names or words):
        return None
    return reported(names, f"HTTP 200 {kind}: {shown(head)}", default="not_a_stream", said=words)


def _document(text: bytes) -> Any:
    """Read a JSON document, or the first of those that stand one a line; None for one that is not whole."""
    for one in (text, text.partition(b"\n")[0]):
        try:
            document = json.loads(one)
        except (ValueError, RecursionError):
            continue
        return document[0] if isinstance(document, list) and document else document
    return None


def _is_of_an_answer(document: dict[str, Any]) -> bool:
    kind, message = document.get("type"), document.get("message")
    is_event = isinstance(kind, str) and _EVENT.match(kind) is not None
    is_named = document.get("object", "error") != "error"
    return not _ANSWER.isdisjoint(document) or isinstance(message, dict) or is_event or is_named


def shown(body: bytes) -> str:
    """Give the head of a body as text; of one that is none, its first bytes in hexadecimal."""
    text = body.decode("utf-8", "replace")
    strange = sum(not (char.isprintable() or char.isspace()) or char == REPLACEMENT for char in text)
    if strange * 10 <= len(text):
        return text
    name = next((name for magic, name in _MAGIC if body.startswith(magic)), "")
    return f"bytes that are no text{name and f', by their beginning {name}'}: {body[:_SHOWN_BYTES].hex(' ')}"
