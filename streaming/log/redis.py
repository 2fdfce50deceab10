"""The log in Redis or Valkey. What is atomic is a script beside this file; the rest are plain reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, cast

import redis.asyncio as aioredis
from redis.exceptions import ResponseError

from streaming.errors import Fenced, LogError, LogLost, LogUnavailable
from streaming.lifecycle import State
from streaming.log.codec import Stored, position_of, snapshot_of
from streaming.log.ports import (
    BEYOND,
    LEASE_MS,
    RETENTION_MS,
    Appended,
    Batch,
    CancelRequest,
    Claim,
    Lease,
    Logged,
    LogSnapshot,
    Ref,
)
from streaming.log.redis_client import COMMAND_S, Script, pooled, within
from streaming.log.redis_format import (
    NOTICE,
    WAKE,
    append_args,
    gone_key,
    keys_of,
    log_key,
    logged_of,
    meta_key,
    view_of,
)
from streaming.log.redis_tail import RedisTail

# No generation may stay unfinished for longer than this; what is older is rubbish of a lost database.
UNFINISHED_MS = 24 * 60 * 60 * 1000
CANCEL_CHANNEL = "sidestream:cancel"
_WRITTEN, _FENCED, _REFUSED = 0, 1, 3
# A script holds up everything else in Redis: for 2 ms with so many batches, as they are while all streams, and for
# 10 ms with so many entries, as there are when all that was lost is written again.
APPENDED_TOGETHER, ENTRIES_TOGETHER = 128, 1_000


class RedisLog:
    """Log port over one pooled client. `connect` builds it; `close` ends it."""

    def __init__(self, client: aioredis.Redis, url: str) -> None:
        self._client = client
        self._url = url
        self._append, self._claim = Script("append"), Script("claim")
        self._cancel, self._snapshot = Script("cancel"), Script("snapshot")
        self._remove, self._announce = Script("remove"), Script("announce")

    @classmethod
    def connect(cls, url: str) -> RedisLog:
        """Build a log for a redis:// or unix:// URL. Connects on first use, and again when it must."""
        return cls(pooled(url), url)

    async def claim(self, ref: Ref, known_attempt: int) -> Claim:
        async with within():
            answer = await self._claim.run(self._client, [meta_key(ref)], [known_attempt, LEASE_MS, UNFINISHED_MS])
        return _claim_of(answer)

    async def append(self, batches: Sequence[Batch]) -> list[Appended | LogError]:
        answers: list[Any] = []
        async with within():
            for some in _together(batches):
                keys = [WAKE, *(meta_key(batch.ref) for batch in some)]
                answers += await self._append.run(self._client, keys, append_args(some))
        return [_appended_of(answer) for answer in answers]

    async def cancel(self, ref: Ref, by: str) -> Claim:
        async with within():
            args = [by, UNFINISHED_MS, CANCEL_CHANNEL, ref.gen, RETENTION_MS]
            answer = await self._cancel.run(self._client, [meta_key(ref), log_key(ref.conversation), WAKE], args)
        return _claim_of(answer)

    async def remove(self, conversation: str, refs: Sequence[Ref]) -> None:
        log, *others = keys_of(conversation, refs)
        args = [BEYOND, UNFINISHED_MS, RETENTION_MS, CANCEL_CHANNEL, *(ref.gen for ref in refs)]
        async with within():
            await self._remove.run(self._client, [log, gone_key(conversation), *others], args)

    async def announce(self, conversation: str, view_json: str) -> str:
        keys = [log_key(conversation), gone_key(conversation), WAKE]
        async with within():
            return _text(await self._announce.run(self._client, keys, [NOTICE, view_json, RETENTION_MS]))

    async def snapshot(self, conversation: str, refs: Sequence[Ref]) -> LogSnapshot:
        keys = keys_of(conversation, refs)
        async with within():
            newest, now, *generations = await self._snapshot.run(self._client, keys, [])
        known = {ref.number: snapshot_of(ref, _stored_of(g)) for ref, g in zip(refs, generations, strict=True) if g}
        return LogSnapshot(position_of(_text(newest) or None, now), known)

    async def leases(self, refs: Sequence[Ref]) -> list[Lease | None]:
        async with within():
            pipe = self._client.pipeline(transaction=False)
            pipe.time()
            for ref in refs:
                pipe.hmget(meta_key(ref), "state", "attempt", "lease")
            (seconds, micros), *rows = await pipe.execute()
        now = seconds * 1000 + micros // 1000
        return [_lease_of(row, now) for row in rows]

    async def range(self, conversation: str, after: str, until: str, limit: int) -> list[Logged]:
        async with within():
            rows = await cast("Any", self._client.xrange(log_key(conversation), f"({after}", until, count=limit))
        return [logged_of(row_id, [part for field in fields.items() for part in field]) for row_id, fields in rows]

    async def position(self, conversation: str) -> tuple[str, int]:
        async with within():
            pipe = self._client.pipeline(transaction=False)
            pipe.time()
            pipe.xinfo_stream(log_key(conversation))
            (seconds, micros), info = await pipe.execute(raise_on_error=False)
        now = seconds * 1000 + micros // 1000
        if isinstance(info, ResponseError):  # no such key
            return position_of(None, now), now
        return position_of(_text(info["last-generated-id"]), now), now

    def tail(self) -> RedisTail:
        return RedisTail(self._url, self._client)

    async def cancellations(self) -> AsyncIterator[str]:
        pubsub = self._client.pubsub()
        try:
            async with within():
                await pubsub.subscribe(CANCEL_CHANNEL)
            while True:
                async with within():
                    # Returning now and then lets redis-py's health check find a dead connection.
                    message = await pubsub.get_message(ignore_subscribe_messages=True, timeout=COMMAND_S / 2)
                if message is not None:
                    yield _text(message["data"])
        finally:
            await asyncio.shield(pubsub.aclose())  # type: ignore[no-untyped-call]

    async def close(self) -> None:
        await self._client.aclose()


def _together(batches: Sequence[Batch]) -> Iterator[Sequence[Batch]]:
    """Give batches in groups for one script each. Redis takes a million arguments at most."""
    first = entries = 0
    for place, batch in enumerate(batches):
        entries += len(batch.entries)
        if place - first == APPENDED_TOGETHER or (place > first and entries > ENTRIES_TOGETHER):
            yield batches[first:place]
            first, entries = place, len(batch.entries)
    if first < len(batches):
        yield batches[first:]


def _appended_of(answer: Any) -> Appended | LogError:
    status, seq, cursor, cancel_at, cancel_by = answer
    if status == _WRITTEN:
        return Appended(_text(cursor), _cancel_of(cancel_at, cancel_by))
    if status == _FENCED:
        return Fenced("a newer driver holds the generation, or it has ended")
    if status == _REFUSED:
        return LogUnavailable(f"Redis refused an append: {_text(seq)}")
    return LogLost(seq)


def _claim_of(answer: Any) -> Claim:
    granted, attempt, seq, state, cancel_at, cancel_by, was_known = answer
    return Claim(bool(granted), attempt, seq, State(_text(state)), _cancel_of(cancel_at, cancel_by), bool(was_known))


def _cancel_of(at: int, by: bytes) -> CancelRequest | None:
    return CancelRequest(at, _text(by)) if at else None


def _lease_of(row: Sequence[Any], now: int) -> Lease | None:
    state, attempt, lease = row
    if state is None and lease is None and attempt is None:
        return None
    return Lease(State(_text(state or b"queued")), int(attempt or 0), int(lease or 0), now)


def _stored_of(answer: Any) -> Stored:
    attempt, seq, newest, text, reasoning, facts, blocks, cancel_at, cancel_by = answer
    pairs = zip(blocks[::2], blocks[1::2], strict=True)
    return Stored(
        attempt=attempt or 0,
        seq=seq,
        text=_text(text),
        reasoning=_text(reasoning),
        facts=tuple(_text(fact) for fact in facts),
        blocks={int(i): view_of(view) for i, view in pairs},
        newest_block=None if newest < 0 else newest,
        cancel=_cancel_of(cancel_at, cancel_by),
    )


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
