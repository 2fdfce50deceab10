"""The floor: a bare ASGI and httpx proxy, what any Python relay must at least do. Nothing is kept."""

from __future__ import annotations

import os
from typing import Any

import httpx

UPSTREAM = os.environ.get("FLOOR_UPSTREAM", "")
client = httpx.AsyncClient(limits=httpx.Limits(max_connections=None), timeout=None)


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    headers = {"content-type": "application/json"}
    async with client.stream("POST", UPSTREAM, content=body, headers=headers) as response:
        start = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
        await send(start)
        async for piece in response.aiter_bytes():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
