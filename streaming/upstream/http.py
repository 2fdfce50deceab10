"""One streamed HTTP call: connect, post, read, enforce deadlines and sizes, and close for certain.

One connection for each call, over one shared TLS context (network.py): no pool in which anything could stay behind
however often its users are cancelled. The price is a TLS handshake for each call.

Nobody cancels a task that reads a body. To stop a call, from any task and at any moment, its socket
is shut down, which needs no await: the reader wakes at once with the end of the stream, and the
peer has its FIN before `close` has even suspended. Only while there is no response yet is a task
cancelled: the one that opens the connection, at most once, and it is ours alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Protocol, Self, cast

import httpx

from streaming.errors import UpstreamError
from streaming.upstream.deadlines import SETTLED, Deadlines, Watchdog
from streaming.upstream.faults import fault, unexpected, without_secrets
from streaming.upstream.http_faults import from_httpx
from streaming.upstream.limits import Limits, Meter
from streaming.upstream.network import chosen
from streaming.upstream.ports import Chunk, Opened
from streaming.upstream.refused import Beginning, check_headers, refuse_what_is_no_stream
from streaming.upstream.transport import Body, OneRequest

__all__ = ["Deadlines", "Dialect", "HttpCall", "Limits"]

# Compressed streams arrive in bursts: a compressor waits for more before it gives anything out.
HEADERS = {"User-Agent": "Sidestream", "Content-Type": "application/json", "Accept-Encoding": "identity"}
HIGHEST_PORT = 65535
OPENED = Opened()
# The event loop itself holds tasks weakly.
_closing_tasks: set[asyncio.Task[bool]] = set()


class Dialect(Protocol):
    """What the bytes of one response mean. Sans-I/O; used for one response only."""

    @property
    def payload_seen(self) -> bool:
        """The last `feed` held more than comments."""
        ...

    @property
    def done(self) -> bool:
        """Nothing that matters follows: the dialect's own terminator was read, or an error."""
        ...

    @property
    def ending(self) -> bool:
        """The upstream has said how the answer ended; only usage, an error or the terminator may follow."""
        ...

    def feed(self, data: bytes) -> Iterable[Chunk]:
        """
        Give the chunks that these bytes complete.

        An error found behind chunks in the same bytes must not swallow them: return them, set `done`,
        and raise from `finish`.
        """
        ...

    def finish(self) -> Iterable[Chunk]:
        """
        Give the last chunks; called once, at the end of the bytes or when `done` is set.

        Raises:
            UpstreamError: incomplete_stream, where the dialect's own sign of the end never came;
                malformed_stream; or what the upstream reported.
        """
        ...


class HttpCall:
    """
    An UpstreamCall over HTTP: a POST of `content`, or a GET where there is none.

    Iterate it in one task; `close` may be called from any. What has arrived before a failure, or
    before `close`, is still given out; then the failure is raised, `call_closed` after `close`.
    Cancelling the iterating task stops the call too; `close` still has to follow.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        content: bytes | None,
        dialect: Dialect,
        *,
        deadlines: Deadlines | None = None,
        limits: Limits | None = None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self._url = url
        self._headers = dict(headers)
        self._content = content
        self._dialect = dialect
        self._meter = Meter(limits or Limits())
        self._secrets = (*secrets, *chosen().secrets())  # Never to be seen in an error's detail.
        self._watchdog = Watchdog(deadlines or Deadlines(), self._expire)
        self._transport = OneRequest(self._watchdog.connected)
        # Only the operator's address is ever called: no redirects, and no proxy but the operator's.
        self._client = httpx.AsyncClient(transport=self._transport, trust_env=False, follow_redirects=False)
        self._opening: asyncio.Task[httpx.Response] | None = None
        self._pieces: Body | AsyncGenerator[bytes, None] | None = None
        self._ready: deque[Chunk] = deque()
        self._unread: Beginning | None = Beginning()  # Until the dialect gives something.
        self._failure: UpstreamError | None = None
        self._settled = False
        self._ended = False
        self._aborted = False
        self._outside = asyncio.Event()  # Cleared while the iterating task is inside httpx or aiohttp.
        self._outside.set()
        self._closing: asyncio.Task[bool] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Chunk:
        ready = self._ready
        while not ready:
            if self._failure:
                await self.close()
                raise self._failure
            if self._ended:
                raise StopAsyncIteration
            await self._advance()
        return ready.popleft()

    @property
    def may_have_arrived(self) -> bool:
        """The connection stood, so the service may have the request."""
        return self._watchdog.has_connected

    async def close(self) -> bool:
        if not self._ended:
            self._fail(fault("call_closed"))
        self._abort()
        if self._closing is None:
            self._closing = asyncio.create_task(self._release(), name="close upstream call")
            _closing_tasks.add(self._closing)
            self._closing.add_done_callback(_closing_tasks.discard)
        # Shielded: whoever waits may be cancelled, even twice, and the closing still goes on.
        return await asyncio.shield(self._closing)

    async def _advance(self) -> None:
        self._outside.clear()
        try:
            if self._pieces is None:
                self._pieces = await self._open()
                self._ready.append(OPENED)
            else:
                self._take(await self._next_piece(self._pieces))
        except UpstreamError as exc:
            self._fail(self._unread.explain(exc) if self._unread else exc)
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError) as exc:
            self._fail(from_httpx(exc), exc)
        except Exception as exc:  # noqa: BLE001 (whatever it says may hold a key, so it goes no further)
            self._fail(unexpected(exc))
        except BaseException:
            self._fail(fault("call_closed"))
            raise
        finally:
            self._outside.set()

    async def _next_piece(self, pieces: Body | AsyncGenerator[bytes, None]) -> bytes | None:
        self._watchdog.reading()
        try:
            return await anext(pieces)
        except StopAsyncIteration:
            return None
        except httpx.HTTPError:
            # Without a proper end even a finish reason proves nothing; unless the end is one that we made.
            if not self._settled:
                raise
            return None

    def _take(self, piece: bytes | None) -> None:
        if self._failure:
            return  # A socket that was shut down looks like the end of the stream; it is not.
        dialect = self._dialect
        if piece is not None:
            if self._unread:
                self._unread.came(piece)
            self._admit(dialect.feed(piece))
            self._watchdog.heard(payload=dialect.payload_seen, ending=dialect.ending)
        if piece is None or dialect.done:
            self._admit(dialect.finish())
            self._ended = True
            self._watchdog.stop()

    def _admit(self, chunks: Iterable[Chunk]) -> None:
        """Make chunks ready one by one: what came before one that is too much, or before an error, is given out."""
        for chunk in chunks:
            self._unread = None
            self._meter.count(chunk)
            self._ready.append(chunk)

    async def _open(self) -> Body | AsyncGenerator[bytes, None]:
        check_headers(self._headers)
        request = self._client.build_request(
            "GET" if self._content is None else "POST", self._url, headers=HEADERS | self._headers,
            content=self._content,
        )  # fmt: skip
        url = request.url
        if url.scheme not in ("http", "https") or not url.host or (url.port or 0) > HIGHEST_PORT:
            raise fault("bad_address")
        self._watchdog.start()
        self._opening = asyncio.create_task(self._client.send(request, stream=True), name="open upstream call")
        await asyncio.wait({self._opening})
        if self._opening.cancelled():
            raise self._failure or fault("call_closed")
        response = self._opening.result()
        await refuse_what_is_no_stream(response)
        if self._unread:
            self._unread.begins(response)
        encoding = response.headers.get("content-encoding", "identity")
        if encoding == "identity" and self._transport.body:
            # All of httpx's three iterators would do nothing for each token but pass it on.
            return self._transport.body
        # httpx declares an iterator; it is a generator, and has to be closed like one.
        return cast("AsyncGenerator[bytes, None]", response.aiter_bytes())

    def _expire(self, code: str) -> None:
        if code == SETTLED:
            self._settled = True
            self._transport.shut_down()
        else:
            self._fail(fault(code))

    def _fail(self, error: UpstreamError, cause: Exception | None = None) -> None:
        """Let the first failure stand, and stop the call."""
        if self._failure is None:
            self._failure = without_secrets(error, self._secrets)
            error.__cause__ = cause
        self._abort()

    def _abort(self) -> None:
        """Stop the call without waiting for anything."""
        if self._aborted:
            return
        self._aborted = True
        self._watchdog.stop()
        if self._opening:
            self._opening.cancel()
        self._transport.shut_down()

    async def _release(self) -> bool:
        # The reader leaves as soon as its socket is down, and a call that has ended or failed is not entered again.
        await self._outside.wait()
        if self._opening:
            await asyncio.wait({self._opening})
            if not self._opening.cancelled():
                self._opening.exception()  # Looked at, or asyncio would complain that nobody did.
        try:
            if self._pieces:
                await self._pieces.aclose()
            await self._client.aclose()
        except (httpx.HTTPError, OSError):
            return False
        return True
