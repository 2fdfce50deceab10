"""
OpenAI Responses in the background: the answer outlives its connection.

Such a response goes on when its connection is lost, and its stream can be joined again behind the
newest sequence number. Where it cannot, the response itself is asked for until it has ended, and the rest of
its output is told. Nothing is called twice, so nothing is paid or said twice. The price: the service stores
the response, and closing the connection does not stop it, so `close` asks for that, unless the response
has ended or nobody could reach it: then it may still be of use to whoever looks for it at the service.
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
from streaming.upstream.faults import fault
from streaming.upstream.http import Deadlines, HttpCall, Limits
from streaming.upstream.network import client
from streaming.upstream.ports import ChatRequest, Chunk, Opened
from streaming.upstream.request import bearer

# The connection went, or lost something, which says nothing of the response. All other failures are its own.
LOST: Final = frozenset(
    {
        "connection_lost", "incomplete_stream", "idle_timeout", "no_payload_timeout", "connect_refused",
        "connect_failed", "connect_timeout", "first_byte_timeout", "hole_in_answer",
    }
)  # fmt: skip
REJOIN_PAUSES_S: Final = (0.2, 1.0, 3.0, 8.0)
POLL_S: Final = 2.0
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
    poll_s: float = POLL_S

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

        dialect = responses.Responses(self.limits, rejoins=True)
        pace = Pace(self.pauses_s, self.poll_s, self.deadlines.total_s)
        return BackgroundCall(url, headers, content, dialect, connect, pace)


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds: before each try in a row to reach the response, between two looks at it, and for all of it."""

    pauses_s: tuple[float, ...]
    poll_s: float
    total_s: float


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
        pace: Pace,
    ) -> None:
        self._url = url
        self._headers = headers
        self._dialect = dialect
        self._connect = connect
        self._pace = pace
        self._call = connect("", content, dialect)
        self._losses = 0  # In a row, without anything that came.
        self._opened = False
        self._brought = False  # The connection gave something of the answer.
        self._polls = False  # The stream is not to be had; the response itself is asked for.
        self._gap_behind: int | None = None  # Where events were missing. Missing twice, they will not come.
        self._until: float | None = None  # By the loop's clock, from the first loss on.
        self._given_up = False
        self._closed = asyncio.Event()
        self._stopping: asyncio.Task[bool] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Chunk:
        while True:
            try:
                chunk = await anext(self._call)
            except UpstreamError as exc:
                await self._go_on(exc)
                continue
            if not isinstance(chunk, Opened):
                self._losses, self._brought = 0, True
            elif self._opened:
                continue
            self._opened = True
            return chunk

    async def close(self) -> bool:
        self._closed.set()
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(), name="stop background response")
        return await asyncio.shield(self._stopping)

    async def _go_on(self, lost: UpstreamError) -> None:
        """Reach the response by another connection, or raise why the answer ends."""
        dialect = self._dialect
        if dialect.response is None or dialect.ended or dialect.ending or self._is_its_own(lost):
            raise lost
        if await self._closes_within(self._next_pause_s(lost)):
            raise lost
        await self._call.close()
        if self._closed.is_set():
            raise lost
        dialect.rejoin()
        stream = "" if self._polls else f"?stream=true&starting_after={dialect.seen}"
        self._call = self._connect(f"/{quote(dialect.response, safe='')}{stream}", None, dialect)
        self._brought = False

    def _is_its_own(self, lost: UpstreamError) -> bool:
        """Say whether the answer itself failed. A further connection that brought nothing of it failed for itself."""
        is_first = not (self._polls or self._until)
        return lost.code == "call_closed" or (lost.code not in LOST and (is_first or self._brought))

    def _next_pause_s(self, lost: UpstreamError) -> float:
        """
        Choose by which way the response is reached next, and how soon.

        Raises:
            UpstreamError: response_lost; it was tried as often, or as long, as is sensible.
        """
        now = asyncio.get_running_loop().time()
        self._until = self._until or now + self._pace.total_s
        pauses_s, runs = self._pace.pauses_s, self._dialect.runs
        if runs or (not self._polls and (self._losses == len(pauses_s) or self._is_refused(lost))):
            self._polls, self._losses = True, 0
        if self._losses == len(pauses_s) or now >= self._until:
            self._given_up = True
            raise fault("response_lost", detail=f"{lost.code}: {lost.detail}") from lost
        self._losses += not runs
        pause_s = self._pace.poll_s if runs else max(pauses_s[self._losses - 1], lost.retry_after_s or 0)
        return min(pause_s, self._until - now)

    def _is_refused(self, lost: UpstreamError) -> bool:
        """Say whether the stream is not to be had: it has no numbers, is refused, or lacks the same events."""
        seen, before = self._dialect.seen, self._gap_behind
        self._gap_behind = seen if lost.code == "hole_in_answer" else None
        return seen is None or lost.code not in LOST or (before is not None and before == self._gap_behind)

    async def _closes_within(self, pause_s: float) -> bool:
        try:
            async with asyncio.timeout(pause_s):
                return await self._closed.wait()
        except TimeoutError:
            return self._closed.is_set()

    async def _stop(self) -> bool:
        closed = await self._call.close()
        if self._dialect.ended or self._dialect.ending or self._given_up:
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
