"""
A Chat Completions upstream with exact pacing, for measurements.

The model's name is "stub:<tokens a second>:<tokens>". Each token is "<n>|<monotonic ns> ", so that a
client on the same machine can tell how long it was on its way. GET /stats tells what happened.
Plain asyncio, so that its own cost stays small beside what is measured.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

STATS = {"started": 0, "finished": 0, "aborted": 0, "sent": 0}
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1").split("\r\n")
        headers = {name.lower(): value.strip() for name, value in (h.split(":", 1) for h in head[1:] if ":" in h)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if head[0].split(" ")[1].startswith("/stats"):
            reply = json.dumps(STATS).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(reply) + reply)
            await writer.drain()
        else:
            await stream(reader, writer, json.loads(body))
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: dict[str, Any]) -> None:
    _, rate, count = request["model"].split(":")
    base = {"id": "stub", "object": "chat.completion.chunk", "created": 1, "model": request["model"]}

    def event(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return chunk(json.dumps({**base, "choices": [choice], **more}))

    STATS["started"] += 1
    writer.write(HEAD + event({"role": "assistant", "content": ""}))
    gone = asyncio.ensure_future(reader.read(1))
    start = time.monotonic()
    try:
        for n in range(int(count)):
            delay = start + n / float(rate) - time.monotonic()
            if delay > 0:
                await asyncio.wait({gone}, timeout=delay)
            if gone.done():
                break
            writer.write(event({"content": f"{n}|{time.monotonic_ns()} "}))
            STATS["sent"] += 1
            await writer.drain()
        else:
            writer.write(event({}, "stop") + chunk("[DONE]") + b"0\r\n\r\n")
            await writer.drain()
            STATS["finished"] += 1
            return
        STATS["aborted"] += 1
    except ConnectionError:
        STATS["aborted"] += 1
    finally:
        gone.cancel()


def chunk(data: str) -> bytes:
    encoded = f"data: {data}\n\n".encode()
    return f"{len(encoded):x}\r\n".encode() + encoded + b"\r\n"


async def main(port: int) -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=1024)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
