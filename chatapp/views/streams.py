"""The live connection over plain HTTP: server-sent events, or the same frames as NDJSON."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Callable
from functools import partial
from random import randrange
from time import monotonic

from asgiref.sync import SyncToAsync
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse

from chatapp.database import in_database
from chatapp.ending import is_told_to_end
from chatapp.errors import Problem
from chatapp.following import Rights, admit, cursor_of, frames_of, refuse_foreign
from chatapp.leaving import Left, leaving
from chatapp.metrics import Sent
from chatapp.owners import owner_of
from chatapp.streams import Stream
from chatapp.wiring import web
from streaming.errors import LogUnavailable
from streaming.follower import Follower, Frame
from streaming.frames import as_ndjson, as_sse

logger = logging.getLogger(__name__)

# The server ends a response here; the reconnect with Last-Event-ID says what has arrived. Without
# this bound a reader that stalls would fill the server's memory: Daphne's write buffer has none.
MAX_BYTES = 1024 * 1024
MAX_S = 5 * 60
RETRY_MS = 1000
RETRY_ELSEWHERE_MS = (20, 200)
EVENT_STREAM, NDJSON = "text/event-stream", "application/x-ndjson"
_SENT = {True: Sent("sse"), False: Sent("ndjson")}
HEADERS = {
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
    "Content-Encoding": "identity",
}


async def follow(request: HttpRequest, conversation: uuid.UUID) -> HttpResponseBase:
    """Send frames from the cursor on: `Last-Event-ID`, else `cursor`."""
    _refuse_cross_site(request)
    content_type = NDJSON if NDJSON in request.headers.get("Accept", "") else EVENT_STREAM
    owner, names = await in_database(admit, partial(owner_of, request), conversation)
    cursor = cursor_of(request.headers.get("Last-Event-ID") or request.GET.get("cursor", ""))
    log = web().log
    await refuse_foreign(log, conversation, cursor)
    if request.method == "HEAD":
        return HttpResponse(content_type=content_type, headers=HEADERS)
    stream = await web().streams.open(owner)
    follower = Follower(web().tailer, log, str(conversation), cursor, names)
    rights = Rights(request.session.session_key, owner, conversation)
    body = _body(follower, rights, stream, _WRITERS[content_type])
    return StreamingHttpResponse(body, content_type=content_type, headers=HEADERS)


async def _body(
    follower: Follower, rights: Rights, stream: Stream, write: Callable[[Frame], bytes]
) -> AsyncGenerator[bytes, None]:
    """Write frames while the reader has the right to them, and until enough was sent or this process leaves."""
    ends_at, sent, is_sse = monotonic() + MAX_S, 0, write is _sse
    count, reader = _SENT[is_sse].count, asyncio.current_task()
    try:
        _let_go_of_thread()
        if is_sse:
            yield _retry(RETRY_MS)
        with leaving.interruptible():
            async with follower, frames_of(follower) as frames:
                async for frame in frames:
                    if is_told_to_end(reader) or not await rights.hold():
                        return
                    written = write(frame)
                    yield written
                    count(len(written))
                    sent += len(written)
                    if sent >= MAX_BYTES or monotonic() >= ends_at:
                        return
    except LogUnavailable:
        return  # The tailer has said it once, for all of them.
    except Left:
        if is_sse:
            # To another process, soon, but not all readers in the same moment.
            yield _retry(randrange(*RETRY_ELSEWHERE_MS))  # noqa: S311
    except Exception:
        # Daphne 4.2 does not end a response whose body raises, and stops looking after all its connections.
        logger.exception("a stream failed")
    finally:
        stream.close()


def _let_go_of_thread() -> None:
    """
    End the thread that asgiref keeps for a request's sync parts; it would stay idle as long as the stream.

    Django's own signals ran in it, and by now all middleware has run. asgiref does the same, with the same two
    names, at a request's end.
    """
    context = SyncToAsync.thread_sensitive_context.get(None)
    executor = SyncToAsync.context_to_thread_executor.pop(context, None) if context else None
    if executor:
        executor.shutdown(wait=False)


def _retry(ms: int) -> bytes:
    """Tell an EventSource how long to wait before it connects again."""
    return f"retry: {ms}\n\n".encode()


def _sse(frame: Frame) -> bytes:
    return as_sse(frame.text, frame.cursor)


def _ndjson(frame: Frame) -> bytes:
    return as_ndjson(frame.text)


_WRITERS: dict[str, Callable[[Frame], bytes]] = {EVENT_STREAM: _sse, NDJSON: _ndjson}


def _refuse_cross_site(request: HttpRequest) -> None:
    """No other site's page may open streams in a visitor's name, even though it could not read them."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise Problem("cross_site", "This address answers to its own pages only.")
