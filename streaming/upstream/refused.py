"""What cannot be a stream by its head, or could not be read as one; and what cannot even be asked."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Mapping
from typing import Final

import httpx

from streaming.errors import UpstreamError
from streaming.upstream.faults import fault
from streaming.upstream.http_faults import from_response
from streaming.upstream.no_stream import HEAD_BYTES, UNREAD, no_stream

# Enough of an error's body to find its code, and no more of what may be anything.
ERROR_BODY_BYTES: Final = 64 * 1024
ERROR_BODY_S: Final = 5
# A whole completion comes as JSON, some gateways label a stream text/plain, Bedrock's frames are binary.
STREAM_TYPES: Final = frozenset(
    {
        "", "text/event-stream", "text/plain", "application/json", "application/x-ndjson", "application/ndjson",
        "application/jsonl", "application/stream+json", "application/octet-stream",
        "application/vnd.amazon.eventstream",
    }
)  # fmt: skip
# Visible ASCII, with spaces and tabs only inside: what HTTP lets a header hold, and what every key is made of.
_HEADER: Final = re.compile(r"[!-~](?:[ -~\t]*[!-~])?")


def check_headers(headers: Mapping[str, str]) -> None:
    """
    Refuse headers that cannot be sent. They come from the operator, and nearly always it is a key.

    Raises:
        UpstreamError: bad_credentials, with the header and the place in its detail, and nothing of its value.
    """
    for name, value in headers.items():
        if not _HEADER.fullmatch(value):
            place = next((at for at, char in enumerate(value, 1) if not " " <= char <= "~"), len(value))
            raise fault("bad_credentials", detail=f"character {place} of the header {name}")


async def refuse_what_is_no_stream(response: httpx.Response) -> None:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.status_code != httpx.codes.OK or kind not in STREAM_TYPES:
        raise from_response(response.status_code, response.headers, await _head_of_body(response))


class Beginning:
    """The first bytes of a body, as long as nothing could be made of them."""

    def __init__(self) -> None:
        self._head = b""
        self.kind = ""

    def begins(self, response: httpx.Response) -> None:
        """Take the response's head. One that says that nothing follows is no stream."""
        self.kind = response.headers.get("content-type", "")
        if response.headers.get("content-length") == "0":
            raise fault("not_a_stream", detail=f"HTTP 200 {self.kind}: an empty body")

    def came(self, piece: bytes) -> None:
        if len(self._head) < HEAD_BYTES:
            self._head += piece[:HEAD_BYTES]

    def explain(self, error: UpstreamError) -> UpstreamError:
        """Give what came for the reason that nothing could be read of it, where it is one."""
        if error.code not in UNREAD or not self._head:
            return error
        return no_stream(self._head[:HEAD_BYTES], self.kind) or error


async def _head_of_body(response: httpx.Response) -> bytes:
    head = b""
    # The status is the news; a body that never comes, or cannot be read, must not hide it.
    with contextlib.suppress(httpx.HTTPError, TimeoutError):
        async with asyncio.timeout(ERROR_BODY_S):
            async for piece in response.aiter_bytes():
                head += piece
                if len(head) >= ERROR_BODY_BYTES:
                    break
    return head[:ERROR_BODY_BYTES]
