"""The log in Redis or Valkey. What is atomic is a script beside this file; the rest are plain reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import redis.asyncio as aioredis
from redis.exceptions import NoScriptError, RedisError, ResponseError

from streaming.errors import Fenced, LogError, LogLost, LogUnavailable
from streaming.lifecycle import TERMINAL, State
from streaming.log.codec import Stored, entry_from_log, header, position_of, snapshot_of
from streaming.log.ports import (
    BEYOND,
    LEASE_MS,
    RETENTION_MS,
    Appended,
    Batch,
    CancelRequest,
    Claim,
    Kind,
    Lease,
    Logged,
    LogSnapshot,
    Ref,
)

# No generation may stay unfinished for longer than this; what is older is rubbish of a lost database.
UNFINISHED_MS = 24 * 60 * 60 * 1000
CANCEL_CHANNEL = "sidestream:cancel"
# A command that takes longer than this has lost its connection. Blocking reads have a bound of their own.
COMMAND_S = 5.0
# A connection for each command under way; more commands than this wait their turn.
MAX_CONNECTIONS = 16
_WRITTEN, _FENCED = 0, 1


class Script:
    """A script by its digest, loaded again when the server has forgotten it."""

    def __init__(self, name: str) -> None:
        self.source = (Path(__file__).parent / f"{name}.lua").read_text(encoding="utf-8")
        self._sha = ""

    async def sha(self, client: aioredis.Redis) -> str:
        if not self._sha:
            self._sha = await self.load(client)
        return self._sha

    async def load(self, client: aioredis.Redis) -> str:
        self._sha = await cast("Any", client.script_load(self.source))
        return self._sha

    async def run(self, client: aioredis.Redis, keys: Sequence[str], args: Sequence[Any]) -> Any:
        sha = await self.sha(client)
        try:
            return await cast("Any", client.evalsha(sha, len(keys), *keys, *args))
        except NoScriptError:
            sha = await self.load(client)
            return await cast("Any", client.evalsha(sha, len(keys), *keys, *args))


class RedisLog:
    """Log port over one pooled client. `connect` builds it; `close` ends it."""

    def __init__(self, client: aioredis.Redis, url: str) -> None:
        self._client = client
        self._url = url
        self._append, self._claim = Script("append"), Script("claim")
        self._cancel, self._snapshot = Script("cancel"), Script("snapshot")
        self._remove = Script("remove")

    @classmethod
    def connect(cls, url: str) -> RedisLog:
        """Build a log for a redis:// or unix:// URL. Connects on first use, and again when it must."""
        # redis-py's plain pool refuses a command when all its connections are busy; this one lets it wait.
        pool = aioredis.BlockingConnectionPool.from_url(
            url,
            protocol=2,
            socket_timeout=None,
            max_connections=MAX_CONNECTIONS,
            timeout=COMMAND_S,
            health_check_interval=25,
        )
        client = aioredis.Redis.from_pool(pool)
        return cls(client, url)

    async def claim(self, ref: Ref, known_attempt: int) -> Claim:
        async with _within():
            answer = await self._claim.run(self._client, [_key(ref, "meta")], [known_attempt, LEASE_MS, UNFINISHED_MS])
        return _claim_of(answer)

    async def append(self, batches: Sequence[Batch]) -> list[Appended | LogError]:
        async with _within():
            answers = await self._evaluate(batches)
            forgotten = [i for i, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
            if forgotten:
                await self._append.load(self._client)
                again = await self._evaluate([batches[i] for i in forgotten])
                for i, answer in zip(forgotten, again, strict=True):
                    answers[i] = answer
        return [_appended_of(answer) for answer in answers]

    async def cancel(self, ref: Ref, by: str) -> Claim:
        async with _within():
            args = [by, UNFINISHED_MS, CANCEL_CHANNEL, ref.gen, RETENTION_MS]
            answer = await self._cancel.run(self._client, [_key(ref, "meta"), log_key(ref.conversation)], args)
        return _claim_of(answer)

    async def remove(self, conversation: str, refs: Sequence[Ref]) -> None:
        keys = _keys_of(conversation, refs)
        args = [BEYOND, UNFINISHED_MS, CANCEL_CHANNEL, *(ref.gen for ref in refs)]
        async with _within():
            await self._remove.run(self._client, keys, args)

    async def announce(self, conversation: str, view_json: str) -> str:
        log = log_key(conversation)
        async with _within():
            pipe = self._client.pipeline(transaction=True)
            pipe.xadd(log, {"h": f"0 0 0 {Kind.NOTICE.value}", "x": view_json})
            pipe.pexpire(log, RETENTION_MS)
            cursor, _ = await pipe.execute()
        return _text(cursor)

    async def snapshot(self, conversation: str, refs: Sequence[Ref]) -> LogSnapshot:
        keys = _keys_of(conversation, refs)
        async with _within():
            newest, now, *generations = await self._snapshot.run(self._client, keys, [])
        known = {ref.number: snapshot_of(ref, _stored_of(g)) for ref, g in zip(refs, generations, strict=True) if g}
        return LogSnapshot(position_of(_text(newest) or None, now), known)

    async def leases(self, refs: Sequence[Ref]) -> list[Lease | None]:
        async with _within():
            pipe = self._client.pipeline(transaction=False)
            pipe.time()
            for ref in refs:
                pipe.hmget(_key(ref, "meta"), "state", "attempt", "lease")
            (seconds, micros), *rows = await pipe.execute()
        now = seconds * 1000 + micros // 1000
        return [_lease_of(row, now) for row in rows]

    async def range(self, conversation: str, after: str, until: str, limit: int) -> list[Logged]:
        async with _within():
            rows = await cast("Any", self._client.xrange(log_key(conversation), f"({after}", until, count=limit))
        return [_logged_of(row_id, fields[b"h"], fields[b"x"]) for row_id, fields in rows]

    async def position(self, conversation: str) -> tuple[str, int]:
        async with _within():
            pipe = self._client.pipeline(transaction=False)
            pipe.time()
            pipe.xinfo_stream(log_key(conversation))
            (seconds, micros), info = await pipe.execute(raise_on_error=False)
        now = seconds * 1000 + micros // 1000
        if isinstance(info, ResponseError):  # no such key
            return position_of(None, now), now
        return position_of(_text(info["last-generated-id"]), now), now

    def tail(self) -> RedisTail:
        return RedisTail(self._url)

    async def cancellations(self) -> AsyncIterator[str]:
        pubsub = self._client.pubsub()
        try:
            async with _within():
                await pubsub.subscribe(CANCEL_CHANNEL)
            while True:
                async with _within():
                    # Returning now and then lets redis-py's health check find a dead connection.
                    message = await pubsub.get_message(ignore_subscribe_messages=True, timeout=COMMAND_S / 2)
                if message is not None:
                    yield _text(message["data"])
        finally:
            await asyncio.shield(pubsub.aclose())  # type: ignore[no-untyped-call]

    async def close(self) -> None:
        await self._client.aclose()

    async def _evaluate(self, batches: Sequence[Batch]) -> list[Any]:
        sha = await self._append.sha(self._client)
        pipe = self._client.pipeline(transaction=False)
        for batch in batches:
            pipe.execute_command("EVALSHA", sha, 6, *append_keys(batch.ref), *_append_args(batch))
        return await pipe.execute(raise_on_error=False)


class RedisTail:
    """
    One blocking XREAD with a connection of its own, and no socket timeout on it.

    redis-py's default of 5 s would break a longer block. A black hole is found because a read that
    outlasts its own block by `MARGIN_S` gives the connection up.
    """

    MARGIN_S = 3.0

    def __init__(self, url: str) -> None:
        self._reader = aioredis.Redis.from_url(url, protocol=2, socket_timeout=None, single_connection_client=True)
        self._reader.set_response_callback("XREAD", lambda response, **_: response)
        self._other = aioredis.Redis.from_url(url, protocol=2, socket_timeout=None, single_connection_client=True)
        self._reader_id: int | None = None

    async def read(self, cursors: Mapping[str, str], block_ms: int) -> dict[str, list[Logged]]:
        async with _within(block_ms / 1000 + self.MARGIN_S):
            try:
                return await self._read(cursors, block_ms)
            except BaseException:
                # The connection may be in the middle of an answer: never use it again.
                self._reader_id = None
                await asyncio.shield(_drop(self._reader))
                raise

    async def interrupt(self) -> None:
        try:
            await self._unblock()
        except LogUnavailable:
            # Its connection may have died since it was last used, however well Redis is now; the next is a new one.
            await asyncio.shield(_drop(self._other))
            await self._unblock()

    async def close(self) -> None:
        await self._reader.aclose()
        await self._other.aclose()

    async def _unblock(self) -> None:
        if self._reader_id is not None:
            async with _within():
                await self._other.execute_command("CLIENT", "UNBLOCK", self._reader_id)  # type: ignore[no-untyped-call]

    async def _read(self, cursors: Mapping[str, str], block_ms: int) -> dict[str, list[Logged]]:
        if self._reader_id is None:
            self._reader_id = await cast("Any", self._reader.client_id())
        keys = [log_key(conversation) for conversation in cursors]
        answer = await self._reader.execute_command(  # type: ignore[no-untyped-call]
            "XREAD", "BLOCK", block_ms, "STREAMS", *keys, *cursors.values()
        )
        return {
            _conversation_of(key): [_logged_of(row_id, fields[1], fields[3]) for row_id, fields in rows]
            for key, rows in answer or ()
        }


async def _drop(client: aioredis.Redis) -> None:
    """Let go of a client's one connection."""
    if client.connection is not None:
        await client.connection.disconnect(nowait=True)


def log_key(conversation: str) -> str:
    return f"ss:{{{conversation}}}:log"


def _keys_of(conversation: str, refs: Sequence[Ref]) -> list[str]:
    """Name the log, then for each generation its own keys."""
    return [log_key(conversation), *(key for ref in refs for key in append_keys(ref)[1:])]


@lru_cache(maxsize=4096)
def append_keys(ref: Ref) -> tuple[str, ...]:
    return log_key(ref.conversation), *(_key(ref, part) for part in ("meta", "text", "reasoning", "facts", "blocks"))


@asynccontextmanager
async def _within(seconds: float = COMMAND_S) -> AsyncIterator[None]:
    """
    Bound what happens inside, and say every failure as LogUnavailable.

    redis-py's own `socket_timeout` writes through `asyncio.wait_for`, which on Python 3.11 can swallow
    a cancellation; so clients have none, and this bounds them instead.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except (RedisError, OSError, TimeoutError) as exc:
        raise LogUnavailable(f"Redis cannot be reached or refused: {exc}") from exc


def _key(ref: Ref, part: str) -> str:
    return f"ss:{{{ref.conversation}}}:{ref.number}:{part}"


def _conversation_of(key: bytes) -> str:
    return key[key.index(b"{") + 1 : key.index(b"}")].decode()


def _append_args(batch: Batch) -> list[str]:
    restore, terminal = int(batch.restore), int(batch.state in TERMINAL)
    place = f"{batch.ref.number} {batch.attempt} {batch.last_seq} {batch.state.value}"
    args = [f"{place} {LEASE_MS} {RETENTION_MS} {restore} {terminal}"]
    for entry in batch.entries:
        args += (header(entry), entry.payload)
    return args


def _appended_of(answer: Any) -> Appended | LogError:
    if isinstance(answer, Exception):
        return LogUnavailable(f"Redis refused an append: {answer}")
    status, seq, cursor, cancel_at, cancel_by = answer
    if status == _WRITTEN:
        return Appended(_text(cursor), seq, _cancel_of(cancel_at, cancel_by))
    if status == _FENCED:
        return Fenced("a newer driver holds the generation, or it has ended")
    return LogLost(seq)


def _claim_of(answer: Any) -> Claim:
    granted, attempt, seq, state, cancel_at, cancel_by = answer
    return Claim(bool(granted), attempt, seq, State(_text(state)), _cancel_of(cancel_at, cancel_by))


def _cancel_of(at: int, by: bytes) -> CancelRequest | None:
    return CancelRequest(at, _text(by)) if at else None


def _lease_of(row: Sequence[Any], now: int) -> Lease | None:
    state, attempt, lease = row
    if state is None and lease is None and attempt is None:
        return None
    return Lease(State(_text(state or b"queued")), int(attempt or 0), int(lease or 0), now)


def _logged_of(row_id: bytes, head: bytes, payload: bytes) -> Logged:
    return Logged(row_id.decode(), entry_from_log(head.decode(), payload.decode()))


def _stored_of(answer: Any) -> Stored:
    attempt, seq, newest, text, reasoning, facts, blocks, cancel_at, cancel_by = answer
    pairs = zip(blocks[::2], blocks[1::2], strict=True)
    return Stored(
        attempt=attempt or 0,
        seq=seq,
        text=_text(text),
        reasoning=_text(reasoning),
        facts=tuple(_text(fact) for fact in facts),
        blocks={int(i): _text(view) for i, view in pairs},
        newest_block=None if newest < 0 else newest,
        cancel=_cancel_of(cancel_at, cancel_by),
    )


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
