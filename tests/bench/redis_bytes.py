"""What an answer costs in Redis: what it receives, what its append-only file grows by, and what it holds."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import redis

from tests.bench.clients import Heard


class RedisBytes:
    """
    Measures from its making on.

    `received` counts everything that arrives at Redis, the reads of web processes and Celery's polling included, and
    `appended` everything that its append-only file grows by.
    """

    def __init__(self, folder: str, conversation: str) -> None:
        self._client: Any = redis.Redis(unix_socket_path=str(next(Path(folder).rglob("*.sock"))))
        self._conversation = conversation
        self._used_before = self._used()
        self._moved_before = self._moved()

    def for_each_token(self, tokens: int) -> dict[str, float]:
        """Give the bytes received and appended since the beginning, for each of so many tokens."""
        return {
            name: round((now - before) / max(1, tokens), 1)
            for (name, now), before in zip(self._moved().items(), self._moved_before.values(), strict=True)
        }

    def held(self, heard: list[Heard]) -> dict[str, float]:
        """
        Give what Redis holds for each byte of the answers so far: the `data` in one conversation's keys, and the
        `memory` that all take by Redis's own account. `heard` begins with what the conversation's reader heard.

        What MEMORY USAGE says of a stream is an estimate, a fifth too high here.
        """
        memory = self._used() - self._used_before
        data = sum(map(self._data, self._client.scan_iter(f"ss:{{{self._conversation}}}*")))
        answers = sum(one.heard_bytes for one in heard)
        return {"data": round(data / heard[0].heard_bytes, 2), "memory": round(memory / answers, 2)}

    def _moved(self) -> dict[str, int]:
        info = self._client.info("everything")
        return {"received": int(info["total_net_input_bytes"]), "appended": int(info["aof_current_size"])}

    def _data(self, key: bytes) -> int:
        match self._client.type(key):
            case b"stream":
                return sum(len(part) for _, fields in self._client.xrange(key) for part in chain(*fields.items()))
            case b"string":
                return int(self._client.strlen(key))
            case b"list":
                return sum(map(len, self._client.lrange(key, 0, -1)))
            case _:
                return sum(map(len, self._client.hvals(key)))

    def _used(self) -> int:
        return int(self._client.info("memory")["used_memory_dataset"])
