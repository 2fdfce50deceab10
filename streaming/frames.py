"""One message to a browser, the same JSON on WebSocket, SSE and NDJSON; and what a browser may send."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from streaming.errors import ProtocolError
from streaming.events import Json, dumps

PING = '{"type":"ping"}'
RESYNC = '{"type":"resync"}'
RENEW = '{"type":"renew"}'
START_CURSOR = "0-0"
# A cursor is a Redis stream id. 20 digits hold any 64-bit number.
_CURSOR = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")


def events_frame(cursor: str, encoded: Sequence[str]) -> str:
    """Join events and views that are JSON already; each was encoded once for all its readers."""
    return f'{{"type":"events","cursor":"{cursor}","events":[{",".join(encoded)}]}}'


def snapshot_frame(cursor: str, generations: Iterable[Json]) -> str:
    """Replace what a reader knows of these generations; it goes on from `cursor`."""
    return dumps({"type": "snapshot", "cursor": cursor, "generations": list(generations)})


def as_sse(frame: str, cursor: str | None = None) -> bytes:
    """Frame for an event stream. JSON holds no raw line end, so one data line is enough."""
    head = f"id: {cursor}\n" if cursor else ""
    return f"{head}data: {frame}\n\n".encode()


def as_ndjson(frame: str) -> bytes:
    return f"{frame}\n".encode()


def parse_cursor(value: str) -> str:
    """
    Check a cursor that a client sent.

    Raises:
        ProtocolError: it does not look like one.
    """
    if not _CURSOR.fullmatch(value):
        raise ProtocolError("a cursor looks like 1700000000000-0; fetch sync for a new one")
    return value


def cursor_key(cursor: str) -> tuple[int, int]:
    """Order cursors: ids are two numbers, not text."""
    ms, _, n = cursor.partition("-")
    return int(ms), int(n)


def parse_ack(text: str) -> str:
    """
    Read the one message a WebSocket client may send: {"type":"ack","cursor":…}.

    Raises:
        ProtocolError: it is anything else.
    """
    try:
        data = json.loads(text)
    except ValueError as exc:
        raise ProtocolError("expected JSON") from exc
    if not isinstance(data, dict) or data.get("type") != "ack" or not isinstance(data.get("cursor"), str):
        raise ProtocolError('expected {"type":"ack","cursor":…}')
    return parse_cursor(data["cursor"])
