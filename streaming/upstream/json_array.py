"""One JSON array as a stream of its objects, and the choice between it and server-sent events."""

from __future__ import annotations

import re
from typing import Final

from streaming.upstream.faults import fault
from streaming.upstream.framing import ServerSentEvent, SseFramer

# What can change where an object ends. An escape is taken as a pair, so that \" ends no string.
_MARKS: Final = re.compile(rb'\\(?:.|$)|["{}]', re.DOTALL)
_BEFORE_ANYTHING: Final = b" \t\r\n\xef\xbb\xbf"


class JsonArrayFramer:
    """The objects of an array, each as soon as it is whole. A lone object without an array will do, too."""

    def __init__(self, max_object_bytes: int) -> None:
        self._max = max_object_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False  # The last byte began an escape.

    @property
    def held_payload(self) -> bool:
        return self._depth > 0

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        begin = 0
        for mark in _MARKS.finditer(data, 1 if self._escaped and data else 0):
            sign = mark.group()
            if sign == b'"':
                self._in_string = not self._in_string
            elif self._in_string or sign[:1] == b"\\":
                continue
            elif sign == b"{":
                begin = begin if self._depth else mark.start()
                self._depth += 1
            elif self._depth:
                self._depth -= 1
                if not self._depth:
                    events.append(self._object(data[begin : mark.end()]))
        self._escaped = self._ends_in_escape(data)
        if self._depth:
            self._keep(data[begin:])
        return events

    def finish(self) -> list[ServerSentEvent]:
        """End of the bytes. An object that is not whole is no event."""
        return []

    def _ends_in_escape(self, data: bytes) -> bool:
        if not data:
            return self._escaped
        # An odd number of them at the end, less the first if it was itself escaped.
        backslashes = len(data) - len(data.rstrip(b"\\"))
        if self._escaped and backslashes == len(data):
            backslashes -= 1
        return backslashes % 2 == 1

    def _object(self, end: bytes) -> ServerSentEvent:
        self._keep(end)
        whole = b"".join(self._pieces)
        self._pieces, self._size = [], 0
        return ServerSentEvent("message", whole.decode("utf-8", "replace"))

    def _keep(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > self._max:
            raise fault("line_too_long")


class SseOrArrayFramer:
    """Server-sent events, or an array where the first character that matters opens one."""

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._chosen: SseFramer | JsonArrayFramer | None = None
        self._head = b""

    @property
    def held_payload(self) -> bool:
        return self._chosen is not None and self._chosen.held_payload

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        if self._chosen is None:
            self._head += data
            first = self._head.lstrip(_BEFORE_ANYTHING)[:1]
            if not first:
                return []
            self._chosen = JsonArrayFramer(self._max) if first in b"[{" else SseFramer(self._max)
            data, self._head = self._head, b""
        return self._chosen.feed(data)

    def finish(self) -> list[ServerSentEvent]:
        return self._chosen.finish() if self._chosen else []
