"""Bytes to events, without I/O and without a clock, for any cut of the bytes.

Time is linear in the bytes, also in one-byte pieces: an unfinished line is kept as a list of pieces
and joined once. What these classes yield depends on the bytes alone, never on how they were cut.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from streaming.upstream.faults import fault

LF, CR, COLON = b"\n", b"\r", b":"
BYTE_ORDER_MARK = "\ufeff"
DONE = "[DONE]"
# A whole event as nearly every service writes it, if there is no CR in it: one search in place of a walk over lines.
WHOLE_EVENT = re.compile(rb"(?:event: (.++)\n)?data: (.*+)\n\n")


@dataclass(slots=True)
class ServerSentEvent:
    """One dispatched event. Not frozen, which would cost three times as much, on the hottest path."""

    event: str  # "message" where the stream names none.
    data: str
    id: str | None = None
    error_field: str | None = None  # The field `error`, no part of the standard: older llama.cpp and gateways.


class LineBuffer:
    """Whole lines out of pieces, decoded as UTF-8. Malformed bytes become U+FFFD, as in a browser."""

    def __init__(self, max_line_bytes: int, *, bare_cr: bool) -> None:
        self._max = max_line_bytes
        self._bare_cr = bare_cr
        self._pieces: list[bytes] = []
        self._size = 0
        self._after_cr = False

    @property
    def unfinished(self) -> bytes:
        """The first piece of the line under way; empty between lines."""
        return self._pieces[0] if self._pieces else b""

    def feed(self, data: bytes) -> list[str]:
        """
        Give the lines that `data` ends, without their ends.

        Raises:
            UpstreamError: line_too_long.
        """
        if self._bare_cr:
            data = self._with_lf_only(data)
        end = data.rfind(LF)
        if end < 0:
            self._keep(data)
            return []
        whole = b"".join((*self._pieces, data[:end])) if self._pieces else data[:end]
        self._pieces, self._size = [], 0
        lines = whole.decode("utf-8", "replace").split("\n")
        if len(whole) > self._max:
            self._check(lines)
        self._keep(data[end + 1 :])
        return lines

    def finish(self) -> str:
        """Give the last line if nothing ended it; else an empty one."""
        rest = b"".join(self._pieces).decode("utf-8", "replace")
        self._pieces, self._size = [], 0
        return rest

    def _with_lf_only(self, data: bytes) -> bytes:
        """A CR ends its line at once; an LF that follows it, maybe in the next piece, is part of the same end."""
        if self._after_cr and data:
            data = data.removeprefix(LF)
            self._after_cr = False
        if CR in data:
            self._after_cr = data.endswith(CR)
            data = data.replace(b"\r\n", LF).replace(CR, LF)
        return data

    def _keep(self, rest: bytes) -> None:
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
            if self._size > self._max:
                raise fault("line_too_long")

    def _check(self, lines: list[str]) -> None:
        # Code points are never more than bytes, so the cheap measure settles nearly every line.
        for line in lines:
            if len(line) > self._max or len(line.encode()) > self._max:
                raise fault("line_too_long")


class SseFramer:
    """
    Server-sent events by the WHATWG rules, and three things the field needs beyond them.

    A last event without a blank line is dispatched if its data is whole; the field `error` is kept;
    a body that begins with `{` is no event stream but one JSON document, dispatched whole at its end.
    """

    def __init__(self, max_line_bytes: int) -> None:
        self._max = max_line_bytes
        self._lines = LineBuffer(max_line_bytes, bare_cr=True)
        self._data: list[str] = []
        self._size = 0
        self._event = "message"
        self._id: str | None = None
        self._error: str | None = None
        self._first = True
        self._undecided = True  # Event stream or one JSON document: the first character that matters tells.
        self._body: list[str] | None = None
        # An event has just ended, and nothing of another was read. Where its last line ended with a CR, an LF may
        # still belong to it; taken for a line of its own, it is an empty one, which means nothing here.
        self._between = False
        self._filled = False  # The event under way has data that is not blank.
        self.held_payload = False  # Whether part of an event is under way that will say something.

    @property
    def whole_body(self) -> bool:
        """The response was one JSON document instead of an event stream."""
        return self._body is not None

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        at = self._take_whole(data, events) if self._between else 0
        self.held_payload = False
        if not at or at < len(data):
            self._take_lines(data[at:], events)
        return events

    def finish(self) -> list[ServerSentEvent]:
        """End of the bytes: give the last event if it is whole, else nothing."""
        events: list[ServerSentEvent] = []
        rest = self._lines.finish()
        if rest:
            self._take(rest, events)
        if self._body is not None:
            body = "\n".join(self._body)
            return [ServerSentEvent("message", body)] if is_whole(body) else []
        if self._error is not None or (self._data and is_whole("\n".join(self._data))):
            self._dispatch(events)
        return events

    def _take_whole(self, data: bytes, events: list[ServerSentEvent]) -> int:
        """Take the events that `data` begins with and holds whole; give where the rest begins."""
        at, end = 0, len(data)
        if end > self._max or data.find(CR) >= 0:
            return 0
        while at < end and (whole := WHOLE_EVENT.match(data, at)):
            name, value = whole.groups()
            event = name.decode("utf-8", "replace") if name else "message"
            events.append(ServerSentEvent(event, value.decode("utf-8", "replace"), self._id))
            at = whole.end()
        return at

    def _take_lines(self, data: bytes, events: list[ServerSentEvent]) -> None:
        lines = self._lines.feed(data)
        unfinished = self._lines.unfinished
        for line in lines:
            self._take(line, events)
        self.held_payload = self._filled or bool(unfinished and not unfinished.startswith(COLON))
        begun = unfinished or self._data or self._error is not None or self._event != "message"
        self._between = bool(events) and not begun

    def _take(self, line: str, events: list[ServerSentEvent]) -> None:
        if self._undecided:
            line = self._begin(line)
        if self._body is not None:
            self._collect(self._body, line)
        elif not line:
            self._dispatch(events)
        elif line.startswith("data: "):
            self._collect(self._data, line[6:])
        elif line[0] != ":":
            self._field(line)

    def _begin(self, line: str) -> str:
        if self._first:
            line = line.removeprefix(BYTE_ORDER_MARK)
            self._first = False
        self._undecided = not line.strip()
        if line.lstrip().startswith("{"):
            self._body = []
        return line

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._collect(self._data, value)
        elif name == "event":
            self._event = value or "message"
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "error":
            self._error = value

    def _collect(self, parts: list[str], value: str) -> None:
        # Each line is bounded, but an event of endless lines would not be.
        parts.append(value)
        self._filled = self._filled or not (value == "" or value.isspace())
        self._size += len(value) + 1
        if self._size > self._max + len(parts):
            raise fault("line_too_long")

    def _dispatch(self, events: list[ServerSentEvent]) -> None:
        if self._data or self._error is not None:
            data = self._data[0] if len(self._data) == 1 else "\n".join(self._data)
            events.append(ServerSentEvent(self._event, data, self._id, self._error))
            self._data, self._size, self._error, self._filled = [], 0, None, False
        self._event = "message"


class NdjsonFramer:
    """One JSON document a line. Lines end at LF; a CR before it is white space to JSON."""

    def __init__(self, max_line_bytes: int) -> None:
        self._lines = LineBuffer(max_line_bytes, bare_cr=False)

    @property
    def held_payload(self) -> bool:
        unfinished = self._lines.unfinished
        return bool(unfinished) and not unfinished.isspace()

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        return [ServerSentEvent("message", line) for line in self._lines.feed(data) if line.strip()]

    def finish(self) -> list[ServerSentEvent]:
        """End of the bytes: give the last line if it is whole JSON, else nothing."""
        rest = self._lines.finish()
        return [ServerSentEvent("message", rest)] if rest.strip() and is_whole(rest) else []


def is_whole(data: str) -> bool:
    """Say whether a last event may be dispatched although nothing ended it."""
    if data.strip() == DONE:
        return True
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True
