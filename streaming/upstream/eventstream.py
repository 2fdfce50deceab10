"""application/vnd.amazon.eventstream: binary frames with checksums.

A frame: its length, the length of its headers, a checksum of these two, headers, payload, a checksum
of all before it. Numbers are big-endian; a header is a name, a type and a value.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Final

from streaming.upstream.faults import fault
from streaming.upstream.framing import ServerSentEvent

PRELUDE: Final = struct.Struct(">III")
CHECKSUM: Final = struct.Struct(">I")
OVERHEAD: Final = PRELUDE.size + CHECKSUM.size
# Bytes that the value of each header type takes; the last two carry their length. Only text matters here.
_SIZES: Final = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_BYTES, _TEXT = 6, 7


class EventStreamFramer:
    """Frames out of any cut, each as an event: its type, and its payload as text."""

    def __init__(self, max_frame_bytes: int) -> None:
        self._max = max_frame_bytes
        self._buffer = bytearray()

    @property
    def held_payload(self) -> bool:
        return bool(self._buffer)

    def feed(self, data: bytes) -> Iterator[ServerSentEvent]:
        """
        Give the frames that `data` completes.

        Raises:
            UpstreamError: malformed_stream, line_too_long.
        """
        self._buffer += data
        at = 0
        try:
            while len(self._buffer) - at >= PRELUDE.size:
                size = self._size(at)
                if len(self._buffer) - at < size:
                    break
                frame = bytes(self._buffer[at : at + size])
                at += size
                yield _event(frame)
        finally:
            del self._buffer[:at]

    def finish(self) -> list[ServerSentEvent]:
        """End of the bytes. A frame that is not whole is no event."""
        return []

    def _size(self, at: int) -> int:
        size, _, checksum = PRELUDE.unpack_from(self._buffer, at)
        if zlib.crc32(self._buffer[at : at + 8]) != checksum or size < OVERHEAD:
            raise fault("malformed_stream", detail="the checksum of a frame's prelude is wrong")
        if size > self._max:
            raise fault("line_too_long")
        return int(size)


def may_be_frame(head: bytes) -> bool:
    """Say whether a frame may begin so: the checksum of its two lengths is right, or still to come."""
    if len(head) < PRELUDE.size:
        return head.startswith(b"\0")  # No frame is so long that its first byte is another.
    return zlib.crc32(head[:8]) == int(PRELUDE.unpack_from(head)[2])


def _event(frame: bytes) -> ServerSentEvent:
    if zlib.crc32(frame[:-4]) != CHECKSUM.unpack_from(frame, len(frame) - 4)[0]:
        raise fault("malformed_stream", detail="the checksum of a frame is wrong")
    end = PRELUDE.size + PRELUDE.unpack_from(frame)[1]
    headers = dict(_headers(frame[PRELUDE.size : end]))
    payload = frame[end:-4].decode("utf-8", "replace")
    if headers.get(":message-type", "event") == "event":
        return ServerSentEvent(headers.get(":event-type", "message"), payload)
    kind = headers.get(":exception-type") or headers.get(":error-code") or "error"
    error = {"type": kind, "message": headers.get(":error-message") or payload}
    return ServerSentEvent(kind, payload, None, json.dumps(error))


def _headers(data: bytes) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(data):
        name_end = at + 1 + data[at]
        name, kind = data[at + 1 : name_end].decode("utf-8", "replace"), data[name_end]
        at = name_end + 1
        if kind in (_BYTES, _TEXT):
            size = int.from_bytes(data[at : at + 2], "big")
            at += 2
        else:
            size = _SIZES[kind]
        if kind == _TEXT:
            yield name, data[at : at + size].decode("utf-8", "replace")
        at += size
