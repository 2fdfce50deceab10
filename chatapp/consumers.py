"""The live connection over WebSocket.

A plain ASGI application: Channels' consumer makes a thread hop for each message it is sent, and a
reader sends one for each frame it got.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from time import monotonic
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from autobahn.exception import Disconnected
from channels.routing import URLRouter
from django.conf import settings
from django.http.cookie import parse_cookie
from django.urls import path, re_path

from chatapp.database import in_database
from chatapp.ending import end
from chatapp.errors import Problem
from chatapp.following import Rights, admit, cursor_of, frames_of
from chatapp.leaving import Left, leaving
from chatapp.metrics import Sent
from chatapp.origins import origin_is_allowed, other_origins
from chatapp.owners import owner_of_session
from chatapp.sessions import SessionReader
from chatapp.wiring import web
from streaming.errors import LogUnavailable, ProtocolError
from streaming.follower import MAX_UNACKNOWLEDGED_BYTES, Follower
from streaming.frames import RENEW, parse_ack

logger = logging.getLogger(__name__)

Say: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]

MAX_MESSAGE = 4 * 1024
# A page that slept answers everything at once when it wakes: 1 MiB of the smallest frames.
MAX_BURST = 6_000
MESSAGES_PER_S = 200

# Daphne refuses to send the registered codes 1011 to 1013, so these are private ones: HTTP's, after a 4.
BAD_MESSAGE, NOT_FOUND, TOO_MANY, FAULT, RESTART, TRY_LATER = 4400, 4404, 4429, 4500, 4502, 4503
GONE = 1000
_SENT = Sent("websocket")
_CODES = {"invalid_cursor": BAD_MESSAGE, "not_found": NOT_FOUND, "too_many_streams": TOO_MANY}


async def follow(scope: Any, receive: Any, send: Any) -> None:
    """
    Send frames from the cursor on; the reader acknowledges them.

    A refusal comes after accepting, since a browser is told the code of a close, but not why a
    handshake failed.
    """
    await receive()
    say = partial(_say, send)
    try:
        await say({"type": "websocket.accept"})
        code = await _served(scope, receive, say)
        await say({"type": "websocket.close", "code": code})
    except _ReaderLeft:
        return


class _ReaderLeft(Exception):
    """Nothing can be sent any more. People reload and close pages all the time."""


async def _say(send: Any, message: dict[str, Any]) -> None:
    """
    Send a message to the reader.

    Raises:
        _ReaderLeft: they are gone. ASGI has an OSError for that; Daphne hands on what autobahn raises.
    """
    try:
        await send(message)
    except (OSError, Disconnected) as exc:
        raise _ReaderLeft from exc


async def _served(scope: Any, receive: Any, say: Say) -> int:
    """Serve, and give the code to close with however that ends."""
    try:
        with leaving.interruptible():
            return await _serve(scope, receive, say)
    except _ReaderLeft:
        raise
    except Left:
        return RESTART
    except Problem as exc:
        return _CODES[exc.code]
    except LogUnavailable:
        return TRY_LATER
    except Exception:
        logger.exception("a WebSocket failed")
        return FAULT


async def _serve(scope: Any, receive: Any, say: Say) -> int:
    """Serve until either side has enough; give the code to close with."""
    conversation, session_key = scope["url_route"]["kwargs"]["conversation"], _session_key(scope)
    owner, names = await in_database(admit, lambda: owner_of_session(SessionReader(session_key)), conversation)
    query = parse_qs(scope["query_string"].decode("latin-1"))
    cursor = cursor_of(query.get("cursor", [""])[0])
    rights = Rights(session_key, owner, conversation)
    stream = await web().streams.open(owner)
    try:
        async with Follower(
            web().tailer, web().log, str(conversation), cursor, names, max_unacknowledged_bytes=MAX_UNACKNOWLEDGED_BYTES
        ) as follower:
            return await _first(_send_frames(follower, rights, say), _hear(follower, receive))
    finally:
        stream.close()


async def _first(*parts: Coroutine[Any, Any, int]) -> int:
    """Give the code of the part that ends first, and end the others."""
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()
    finally:
        await end(*tasks)


async def _send_frames(follower: Follower, rights: Rights, say: Say) -> int:
    async with frames_of(follower) as frames:
        async for frame in frames:
            if not await rights.hold():
                return NOT_FOUND
            if rights.session_is_due:
                # A WebSocket can set no cookie, so the page is to make a request.
                rights.session_is_due = False
                await say({"type": "websocket.send", "text": RENEW})
            await say({"type": "websocket.send", "text": frame.text})
            _SENT.count(len(frame.text))
    return TRY_LATER


async def _hear(follower: Follower, receive: Any) -> int:
    """Take acknowledgements, at a bounded rate."""
    allowed, at = float(MAX_BURST), monotonic()
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return GONE
        now = monotonic()
        allowed, at = min(MAX_BURST, allowed + (now - at) * MESSAGES_PER_S) - 1, now
        if allowed < 0:
            return TOO_MANY
        text = message.get("text")
        if text is None or len(text) > MAX_MESSAGE:
            return BAD_MESSAGE
        try:
            follower.acknowledge(parse_ack(text))
        except ProtocolError:
            return BAD_MESSAGE


def _session_key(scope: Any) -> str | None:
    for name, value in scope["headers"]:
        if name == b"cookie":
            found = parse_cookie(value.decode("latin-1")).get(settings.SESSION_COOKIE_NAME)
            if found:
                return found
    return None


async def refuse(_scope: Any, receive: Any, send: Any) -> None:
    """Close before accepting: the server answers 403."""
    await receive()
    await send({"type": "websocket.close"})


# Django's types know views only; Channels' router takes ASGI applications.
_ROUTES = URLRouter(
    [
        path("ws/conversations/<uuid:conversation>", follow),  # type: ignore[arg-type]
        re_path("", refuse),  # type: ignore[arg-type]
    ]
)


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Every WebSocket comes in here: first its Origin, then its address."""
    if origin_is_allowed(scope["headers"], _scheme(scope), settings.ALLOWED_HOSTS, other_origins()):
        await _ROUTES(scope, receive, send)
    else:
        await refuse(scope, receive, send)


def _scheme(scope: Any) -> str:
    """Give the scheme of the page's own address. Daphne tells none, and serves plain http."""
    forwarded = [value for name, value in scope["headers"] if name == b"x-forwarded-proto"]
    if settings.TRUST_FORWARDED_PROTO and forwarded == [b"https"]:
        return "https"
    return "https" if scope.get("scheme") == "wss" else "http"
