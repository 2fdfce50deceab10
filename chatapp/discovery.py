"""Finds models that nobody wrote down, in the background: no page and no call ever waits for it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

import httpx
import orjson

from chatapp.env import read_bool
from chatapp.keys import mistake_in_key, read_key
from chatapp.modelconfig import ModelConfig
from chatapp.sources import SOURCES, Found, Source, active
from streaming.errors import UpstreamError
from streaming.upstream.faults import unexpected, without_secrets
from streaming.upstream.http_faults import from_httpx, from_response
from streaming.upstream.network import chosen, client

logger = logging.getLogger(__name__)

# Providers change their lists some times a month; a server on this machine comes and goes.
FRESH_S: Final[Mapping[bool, float]] = {True: 15.0, False: 900.0}  # By whether it is local.
CONNECT_S: Final[Mapping[bool, float]] = {True: 0.5, False: 3.0}
TOTAL_S: Final = 8.0
LARGEST_LIST_BYTES: Final = 10 * 1024 * 1024


class Discovery:
    """
    What the sources list, as far as it is known by now; asking starts another look where that is too old.

    `environ` says which keys there are, and SIDESTREAM_DISCOVER=0 switches all of it off; both are read at
    each question.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        sources: tuple[Source, ...] = SOURCES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._environ = environ
        self._sources = sources
        self._clock = clock
        self._found: dict[str, list[ModelConfig]] = {}
        self._looked_at: dict[str, float] = {}
        self._looking = threading.Lock()
        self.version = 0  # Changes with what is known.
        self.problems: dict[str, UpstreamError] = {}  # By a source's id; servers that do not run are none.

    def models(self) -> list[ModelConfig]:
        """List what is known now. Never waits."""
        sources = self._active()
        due = [source for source in sources if self._is_due(source)]
        if due and self._looking.acquire(blocking=False):
            threading.Thread(target=self._look_and_release, args=(due,), name="discovery", daemon=True).start()
        return [config for source in sources for config in self._found.get(source.id, ())]

    def find(self, model: str) -> ModelConfig | None:
        """Find a model by its id, also one that is not listed yet: its id says whose it is."""
        source_id, separator, name = model.partition(":")
        source = next((source for source in self._active() if source.id == source_id), None)
        if source is None or not separator or not name:
            return None
        listed = (config for config in self._found.get(source_id, ()) if config.id == model)
        return next(listed, source.config(Found(name)))

    def look(self) -> None:
        """Ask all sources now, and wait for their answers."""
        with self._looking:
            self._look(self._active())

    def _active(self) -> list[Source]:
        if not read_bool("SIDESTREAM_DISCOVER", True, environ=self._environ):
            return []
        return list(active(self._sources, self._environ))

    def _is_due(self, source: Source) -> bool:
        looked_at = self._looked_at.get(source.id)
        return looked_at is None or self._clock() - looked_at > FRESH_S[source.key_env is None]

    def _look_and_release(self, sources: list[Source]) -> None:
        try:
            self._look(sources)
        except Exception as exc:  # noqa: BLE001 (its words may hold a key)
            logger.error("looking for models failed: %s", unexpected(exc).detail)  # noqa: TRY400
        finally:
            self._looking.release()

    def _look(self, sources: list[Source]) -> None:
        asyncio.run(self._ask_all(sources))

    async def _ask_all(self, sources: list[Source]) -> None:
        await asyncio.gather(*map(self._ask, sources))

    async def _ask(self, source: Source) -> None:
        """Look at one source. Whatever is wrong with it is its own problem, and no other's."""
        key = read_key(self._environ, source.key_env) or ""
        try:
            self._check_key(source)
            listed = await _fetch(source, key)
            self._found[source.id] = source.models(listed, datetime.now(UTC).date())
            self.problems.pop(source.id, None)
        except UpstreamError as exc:
            self._note(source, without_secrets(exc, (key, *chosen().secrets())))
        except Exception as exc:  # noqa: BLE001 (its words may hold the key)
            self._note(source, unexpected(exc))
        self._looked_at[source.id] = self._clock()
        self.version += 1

    def _check_key(self, source: Source) -> None:
        mistake = mistake_in_key(self._environ, source.key_env) if source.key_env else None
        if mistake:
            raise UpstreamError("bad_credentials", mistake)

    def _note(self, source: Source, exc: UpstreamError) -> None:
        if source.key_env is None:
            self._found.pop(source.id, None)  # It is not there, or no longer.
            return
        # A provider that is away for a moment still has its models. One that refuses the key has none for us.
        if exc.code in ("unauthorized", "forbidden", "bad_credentials"):
            self._found.pop(source.id, None)
        if source.id not in self.problems:
            logger.warning("the models of %s cannot be listed: %s %s", source.label, exc.message, exc.detail)
        self.problems[source.id] = exc


async def _fetch(source: Source, key: str) -> Any:
    local = source.key_env is None
    headers = {**source.headers, **(source.authorise(key, source.list_url, b"") if key else {})}
    try:
        async with (
            asyncio.timeout(TOTAL_S),
            client(source.list_url, timeout=httpx.Timeout(TOTAL_S, connect=CONNECT_S[local])) as asking,
            asking.stream("GET", source.list_url, headers=headers) as response,
        ):
            body = await _read(response)
    except TimeoutError as exc:
        raise UpstreamError("first_byte_timeout", "The list of models did not come in time.") from exc
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        raise from_httpx(exc) from exc
    if response.status_code != HTTPStatus.OK:
        raise from_response(response.status_code, response.headers, body)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as exc:
        raise from_response(HTTPStatus.OK, response.headers, body[:200]) from exc


async def _read(response: httpx.Response) -> bytes:
    body = b""
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > LARGEST_LIST_BYTES:
            break
    return body
