"""Load clients that cost little: raw sockets, and a regular expression instead of a parser."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import struct
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx

TOKEN = re.compile(rb"(\d+)\|(\d+) ")
DELTA = re.compile(rb'"seq":(\d+),"at":\d+,"gen":"[^"]*","type":"text_delta","text":"([^"]*)"')
TOKEN_IN_PAGE = re.compile(r'name="csrf-token" content="([^"]+)"')
ACKNOWLEDGE_S = 0.25
RESYNC = b'data: {"type":"resync"}\n'
ENDS = (b'"type":"done"', b'"type":"error"', b'"type":"cancelled"')


@dataclass
class Heard:
    """What one client got: added latency of each token in ms, and whether all came in order."""

    latencies: list[float] = field(default_factory=list)
    next_token: int = 0
    seq: int = 0  # Up to here everything was told; what comes again is skipped by it, as the protocol says.
    heard_bytes: int = 0
    in_order: bool = True
    ended: bool = False

    def take(self, text: bytes) -> None:
        now = time.monotonic_ns()
        for number, sent in TOKEN.findall(text):
            self.in_order = self.in_order and int(number) == self.next_token
            self.next_token += 1
            self.heard_bytes += len(number) + len(sent) + len("| ")
            self.latencies.append((now - int(sent)) / 1e6)

    def take_frame(self, frame: bytes) -> None:
        if b'"type":"snapshot"' in frame:
            # It came instead of events, for instance together with a very large block of HTML.
            (known,) = json.loads(frame.removeprefix(b"data: "))["generations"]
            self.seq = known["seq"]
            self.next_token = int(TOKEN.findall(known["text"].encode())[-1][0]) + 1
            self.ended = self.ended or known["state"] != "running"
        for seq, text in DELTA.findall(frame):
            if int(seq) > self.seq:
                self.seq = int(seq)
                self.take(text)
        self.ended = self.ended or any(end in frame for end in ENDS)


async def floor_client(port: int, model: str, heard: Heard) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({"model": model, "stream": True, "messages": []}).encode()
    writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    while line := await reader.readline():
        if line.startswith(b"data: [DONE]"):
            heard.ended = True
            break
        if line.startswith(b"data: "):
            heard.take(line)
    writer.close()


class Person:
    """A guest of the product: a session of its own, and one conversation."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.http = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60)
        self.conversation = ""
        self.cursor = ""
        self.token = ""

    async def arrive(self) -> None:
        page = await self.http.get("/")
        page.raise_for_status()
        self.token = TOKEN_IN_PAGE.findall(page.text)[0]
        response = await self.http.post("/api/conversations", json={}, headers=self.headers())
        response.raise_for_status()
        self.conversation = response.json()["id"]
        self.cursor = (await self.http.get(f"/api/conversations/{self.conversation}/sync")).json()["cursor"]

    def headers(self) -> dict[str, str]:
        return {"X-CSRFToken": self.token, "Origin": f"http://127.0.0.1:{self.port}"}

    def cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.http.cookies.items())

    async def ask(self, model: str, panes: int = 1) -> list[str]:
        body = {
            "prompt": "measure",
            "key": base64.b16encode(os.urandom(8)).decode(),
            "panes": [{"id": str(uuid4()), "model": model, "params": {}} for _ in range(panes)],
        }
        url = f"/api/conversations/{self.conversation}/turns"
        response = await self.http.post(url, json=body, headers=self.headers())
        response.raise_for_status()
        return [generation["gen"] for generation in response.json()["turn"]["generations"]]

    async def follow_sse(self, heard: Heard) -> None:
        while not heard.ended:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**24)
            path = f"/api/conversations/{self.conversation}/events?cursor={self.cursor}"
            head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nCookie: {self.cookie()}\r\n\r\n"
            writer.write(head.encode())
            if b" 200 " not in await reader.readline():
                raise AssertionError("a measured client was refused")
            async for line in lines_of_chunks(reader):
                if line.startswith(b"id: "):
                    self.cursor = line[4:].strip().decode()
                elif line == RESYNC:
                    raise AssertionError("a measured client was told to sync: what it got is not what was streamed")
                elif line.startswith(b"data: "):
                    heard.take_frame(line)
                    if heard.ended:
                        break
            writer.close()

    async def follow_ws(self, heard: Heard) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**24)
        path = f"/ws/conversations/{self.conversation}?cursor={self.cursor}"
        key = base64.b64encode(os.urandom(16)).decode()
        writer.write(
            (
                f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nOrigin: http://127.0.0.1:{self.port}\r\n"
                f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                f"Sec-WebSocket-Version: 13\r\nCookie: {self.cookie()}\r\n\r\n"
            ).encode()
        )
        if b" 101 " not in await reader.readuntil(b"\r\n\r\n"):
            raise AssertionError("a measured client was refused")
        acknowledged_at = 0.0
        while not heard.ended:
            opcode, payload = await read_ws_frame(reader)
            if opcode == 9:
                write_ws_frame(writer, 10, payload)
            elif opcode == 8:
                break
            else:
                heard.take_frame(payload)
                acknowledged_at = self.acknowledge(writer, payload, acknowledged_at)
        writer.close()

    def acknowledge(self, writer: asyncio.StreamWriter, frame: bytes, last: float) -> float:
        """Acknowledge as often as the page does; give when it was done last."""
        match = re.search(rb'"cursor":"([\d-]+)"', frame)
        if match is None or time.monotonic() < last + ACKNOWLEDGE_S:
            return last
        write_ws_frame(writer, 1, b'{"type":"ack","cursor":"%s"}' % match[1])
        return time.monotonic()

    async def leave(self) -> None:
        await self.http.aclose()


async def lines_of_chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Read a chunked response, from within its head on, line by line."""
    while await reader.readline() != b"\r\n":
        pass
    rest = b""
    while size := int(await reader.readline() or b"0", 16):
        rest += await reader.readexactly(size)
        await reader.readexactly(2)
        *lines, rest = rest.split(b"\n")
        for line in lines:
            yield line + b"\n"


async def read_ws_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    first, second = await reader.readexactly(2)
    length = second & 127
    if length == 126:
        (length,) = struct.unpack(">H", await reader.readexactly(2))
    elif length == 127:
        (length,) = struct.unpack(">Q", await reader.readexactly(8))
    return first & 15, await reader.readexactly(length)


def write_ws_frame(writer: asyncio.StreamWriter, opcode: int, payload: bytes) -> None:
    mask = os.urandom(4)
    masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
    size = len(payload)
    short = size < 126
    head = struct.pack(">BB", 0x80 | opcode, 0x80 | size) if short else struct.pack(">BBH", 0x80 | opcode, 0xFE, size)
    writer.write(head + mask + masked)


def summary(name: str, heard: list[Heard], **more: Any) -> dict[str, Any]:
    latencies = sorted(latency for one in heard for latency in one.latencies) or [0.0]
    count = len(latencies)
    return {
        "name": name,
        "streams": len(heard),
        "tokens": len(latencies),
        "complete": all(one.ended and one.in_order for one in heard) and len({one.next_token for one in heard}) == 1,
        "added_ms": {p: round(latencies[min(count - 1, int(count * p / 100))], 1) for p in (50, 95, 99)},
        **more,
    }
