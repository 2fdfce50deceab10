"""
OpenAI Responses in the background: the answer outlives its connection.

Such a response goes on when its connection is lost, and its stream can be joined again behind the
newest sequence number. Nothing is called twice, so nothing is paid or said twice. The price: the
service stores the response, and closing the connection does not stop it, so `close` asks for that.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Self
from urllib.parse import quote

import httpx

from streaming.errors import UpstreamError
from streaming.upstream import responses
from streaming.upstream.http import Deadlines, HttpCall, Limits
from streaming.upstream.network import client
from streaming.upstream.ports import ChatRequest, Chunk, Opened
from streaming.upstream.request import bearer

# The connection went, and says nothing of the response. All other failures are the response's own.
LOST: Final = frozenset(
    {
        "connection_lost", "incomplete_stream", "idle_timeout", "no_payload_timeout", "connect_refused",
        "connect_failed", "connect_timeout", "first_byte_timeout", "upstream_error", "overloaded",
    }
)  # fmt: skip
REJOIN_PAUSES_S: Final = (0.2, 1.0, 3.0, 8.0)
CANCEL_S: Final = 1.5


def build_body(request: ChatRequest) -> dict[str, Any]:
    """
    Build the JSON of a call.

    Raises:
        UpstreamError: unsupported_parameter, or what check_extras raises.
    """
    return {**responses.build_body(request), "background": True, "store": True}


@dataclass(frozen=True, slots=True)
class BackgroundUpstream:
    """A configured service that speaks Responses and keeps them in the background."""

    address: str
    key: str | None = None
    deadlines: Deadlines = field(default_factory=Deadlines)
    limits: Limits = field(default_factory=Limits)
    pauses_s: tuple[float, ...] = REJOIN_PAUSES_S

    def call(self, request: ChatRequest) -> BackgroundCall:
        """
        Prepare a call.

        Raises:
            UpstreamError: unsupported_parameter, or what check_extras raises; nothing was sent.
        """
        content = json.dumps(build_body(request), ensure_ascii=False, separators=(",", ":")).encode()
        headers = bearer(self.key, "", content) if self.key else {}
        url = f"{self.address.rstrip('/')}/responses"

        def connect(path: str, content: bytes | None, dialect: responses.Responses) -> HttpCall:
            return HttpCall(
                url + path, headers, content, dialect,
                deadlines=self.deadlines, limits=self.limits, secrets=(self.key,) if self.key else (),
            )  # fmt: skip

        return BackgroundCall(url, headers, content, responses.Responses(self.limits), connect, self.pauses_s)


class BackgroundCall:
    """
    One response over as many connections as it takes; pauses begin anew with every piece that comes.

    `close` is True only once the connection is closed and the service has said that it stops.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        content: bytes,
        dialect: responses.Responses,
        connect: Callable[[str, bytes | None, responses.Responses], HttpCall],
        pauses_s: tuple[float, ...],
    ) -> None:
        self._url = url
        self._headers = headers
        self._dialect = dialect
        self._connect = connect
        self._pauses_s = pauses_s
        self._call = connect("", content, dialect)
        self._losses = 0
        self._opened = False
        self._closed = asyncio.Event()
        self._stopping: asyncio.Task[bool] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Chunk:
        while True:
            try:
                chunk = await anext(self._call)
            except UpstreamError as exc:
                await self._rejoin(exc)
                continue
            if not isinstance(chunk, Opened):
                self._losses = 0
            elif self._opened:
                continue
            self._opened = True
            return chunk

    async def close(self) -> bool:
        self._closed.set()
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(), name="stop background response")
        return await asyncio.shield(self._stopping)

    async def _rejoin(self, lost: UpstreamError) -> None:
        dialect = self._dialect
        known = dialect.response is not None and dialect.seen is not None and not dialect.ending
        tries_left = self._losses < len(self._pauses_s)
        if not known or lost.code not in LOST or not tries_left or await self._pause():
            raise lost
        await self._call.close()
        dialect.rejoin()
        path = f"/{quote(dialect.response or '', safe='')}?stream=true&starting_after={dialect.seen}"
        self._call = self._connect(path, None, dialect)

    async def _pause(self) -> bool:
        """Wait before the next connection; True when the call was closed meanwhile."""
        pause_s = self._pauses_s[self._losses]
        self._losses += 1
        try:
            async with asyncio.timeout(pause_s):
                return await self._closed.wait()
        except TimeoutError:
            return self._closed.is_set()

    async def _stop(self) -> bool:
        closed = await self._call.close()
        if self._dialect.done or self._dialect.ending:
            return closed
        if self._dialect.response is None:
            # Without its name it cannot be cancelled; it may run on all the same.
            return closed and not self._call.may_have_arrived
        try:
            async with (
                asyncio.timeout(CANCEL_S),
                client(self._url) as asking,
            ):
                path = f"/{quote(self._dialect.response, safe='')}/cancel"
                answer = await asking.post(self._url + path, headers=dict(self._headers))
        except (httpx.HTTPError, TimeoutError):
            return False
        return closed and answer.status_code == HTTPStatus.OK
