"""Is it ready? Asked again and again while a process starts; no answer is an answer too."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from typing import Any, cast

from redis.asyncio import Redis
from redis.exceptions import RedisError

from chatapp import presence

_ANSWER_S = 5.0  # Longer than /readyz takes at most.
_MOST_BYTES = 16 * 1024
_LENGTH = re.compile(rb"^content-length: *(\d+)", re.IGNORECASE | re.MULTILINE)


async def redis_answers(url: str) -> bool:
    """Tell whether Redis answers PING; while it still loads its file, it answers with an error."""
    with contextlib.suppress(RedisError, OSError):
        async with presence.connect(url) as client:
            return bool(await client.ping())
    return False


class WorkerProbe:
    """Tells whether a worker process has given a sign of life since it was first asked about."""

    def __init__(self, url: str) -> None:
        self._url = url
        # A container gives its processes the same numbers at every start, and Redis remembers the
        # last one's words. So only those count that are newer than the process: by Redis's clock.
        self._since_ms: dict[int, int] = {}

    async def __call__(self, pid: int) -> bool:
        with contextlib.suppress(RedisError, OSError):
            async with presence.connect(self._url) as client:
                since = self._since_ms.setdefault(pid, await _redis_ms(client))
                heard = await client.zscore(presence.KEY, f"{socket.gethostname()}:{pid}")
                return heard is not None and float(heard) >= since
        return False


async def http_answers(address: str, port: int, path: str, host: str) -> bool:
    """Tell whether GET answers with 2xx, or with a redirect (to HTTPS, where the settings ask for it)."""
    answer = await http_get(address, port, path, host)
    return answer is not None and 200 <= answer[0] < 400


async def http_get(address: str, port: int, path: str, host: str) -> tuple[int, str] | None:
    """Give status and body of a short answer; None if there is none in time."""
    with contextlib.suppress(OSError, TimeoutError, ValueError, IndexError):
        answer = await asyncio.wait_for(_get(address, port, path, host), _ANSWER_S)
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), body.decode(errors="replace")
    return None


async def _redis_ms(client: Redis) -> int:
    seconds, _ = await cast("Any", client.time())
    return int(seconds) * 1000


async def _get(address: str, port: int, path: str, host: str) -> bytes:
    reader, writer = await asyncio.open_connection(address, port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        answer = bytearray()
        # Not every server closes the connection when it was asked to.
        while not _is_whole(answer) and (data := await reader.read(_MOST_BYTES)):
            answer += data
        return bytes(answer)
    finally:
        writer.close()


def _is_whole(answer: bytearray) -> bool:
    head, blank, body = answer.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return len(answer) >= _MOST_BYTES or (bool(blank) and len(body) >= (int(length[1]) if length else 0))
