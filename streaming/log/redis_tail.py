"""One blocking XREAD over many logs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from streaming.errors import LogUnavailable
from streaming.log.ports import Logged
from streaming.log.redis_client import drop, single, within
from streaming.log.redis_format import conversation_of, log_key, logged_of


class RedisTail:
    """
    One blocking XREAD with a connection of its own, and no socket timeout on it.

    redis-py's default of 5 s would break a longer block. A black hole is found because a read that
    outlasts its own block by `MARGIN_S` gives the connection up.
    """

    MARGIN_S = 3.0

    def __init__(self, url: str) -> None:
        self._reader = single(url)
        self._reader.set_response_callback("XREAD", lambda response, **_: response)
        self._other = single(url)
        self._reader_id: int | None = None

    async def read(self, cursors: Mapping[str, str], block_ms: int) -> dict[str, list[Logged]]:
        async with within(block_ms / 1000 + self.MARGIN_S):
            try:
                return await self._read(cursors, block_ms)
            except BaseException:
                # The connection may be in the middle of an answer: never use it again.
                self._reader_id = None
                await asyncio.shield(drop(self._reader))
                raise

    async def interrupt(self) -> None:
        try:
            await self._unblock()
        except LogUnavailable:
            # Its connection may have died since it was last used, however well Redis is now; the next is a new one.
            await asyncio.shield(drop(self._other))
            await self._unblock()

    async def close(self) -> None:
        await self._reader.aclose()
        await self._other.aclose()

    async def _unblock(self) -> None:
        if self._reader_id is not None:
            async with within():
                await self._other.execute_command("CLIENT", "UNBLOCK", self._reader_id)  # type: ignore[no-untyped-call]

    async def _read(self, cursors: Mapping[str, str], block_ms: int) -> dict[str, list[Logged]]:
        if self._reader_id is None:
            self._reader_id = await cast("Any", self._reader.client_id())
        keys = [log_key(conversation) for conversation in cursors]
        answer = await self._reader.execute_command(  # type: ignore[no-untyped-call]
            "XREAD", "BLOCK", block_ms, "STREAMS", *keys, *cursors.values()
        )
        return {
            conversation_of(key): [logged_of(row_id, fields) for row_id, fields in rows] for key, rows in answer or ()
        }
