"""
llama.cpp's own endpoints: tokens in, tokens out, so that starting and resuming are one path.

Three questions before the answer: /apply-template turns messages into a prompt, /tokenize the prompt into
ids, and, once for each server, the vocabulary is read, by which the ids that come back are checked.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import httpx

from streaming.errors import UpstreamError
from streaming.upstream.answer import Answer
from streaming.upstream.dialect import MISSHAPEN, JsonDialect
from streaming.upstream.faults import fault, without_secrets
from streaming.upstream.framing import SseFramer
from streaming.upstream.http import Deadlines, HttpCall, Limits
from streaming.upstream.http_faults import from_httpx, from_response
from streaming.upstream.network import client
from streaming.upstream.ports import ChatRequest, Chunk, Message
from streaming.upstream.refused import check_headers
from streaming.upstream.request import JSON_SCHEMA, Check, Fields, check_extras, take_params
from streaming.upstream.usage import count
from streaming.upstream.vocabulary import TokenTrail, Vocabulary

logger = logging.getLogger(__name__)

PARAMS: Final[Fields] = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "n_predict",
    "seed": "seed",
    "stop": "stop",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "top_k": "top_k",
    "min_p": "min_p",
    "repeat_penalty": "repeat_penalty",
}
CHECKS: Final[Mapping[str, Check]] = {
    "top_k": lambda value: type(value) is int and value >= 0,
    "min_p": lambda value: type(value) in (int, float) and 0 <= value <= 1,
    "repeat_penalty": lambda value: type(value) in (int, float) and 0 < value <= 2,
}
# What ended the answer, in words of the table that all dialects share.
STOP_TYPES: Final = {"eos": "eos", "limit": "limit", "word": "stop_sequence"}
# Private-use characters, which no template touches and no message needs.
_MARK: Final = re.compile("\ue0f0(\\d+)\ue0f1")
# No token has this id; /tokenize passes numbers through, so it parts one text's ids from the next one's.
_BORDER: Final = -1


def build_body(request: ChatRequest, prompt: Sequence[int]) -> dict[str, Any]:
    """
    Build the JSON of a /completion call.

    Raises:
        UpstreamError: unsupported_parameter, or what check_extras raises. Tools would come back as text of
            the model's own form, and images have no token ids: both want the server's chat endpoint.
    """
    check_extras(request, {JSON_SCHEMA})
    params = take_params(request.params, PARAMS, CHECKS)
    if request.answer_schema:
        params["json_schema"] = dict(request.answer_schema.schema)
    return {
        "prompt": list(prompt), "stream": True, "return_tokens": True, "cache_prompt": True,
        # While it reads a prompt, the server finds out that nobody listens only by trying to say something.
        "return_progress": True,
        **params,
    }  # fmt: skip


class LlamaCpp(JsonDialect):
    """One response of /completion. It is whole when an object said `stop`."""

    def __init__(self, limits: Limits, vocabulary: Vocabulary | None = None) -> None:
        super().__init__(SseFramer(limits.line_bytes), Answer())
        self._trail = TokenTrail(vocabulary)

    def take(self, payload: dict[str, Any], event: str) -> None:  # noqa: ARG002
        text, tokens = payload.get("content") or "", payload.get("tokens") or ()
        if text or tokens:
            self.answer.text(text, self._trail.follow(text, tokens, payload.get("tokens_predicted") or 0))
        if payload.get("stop"):
            self.answer.used(
                {
                    "input": count(payload, "tokens_evaluated"),
                    "output": count(payload, "tokens_predicted"),
                    "cached": count(payload, "timings.cache_n"),
                }
            )
            raw = str(payload.get("stop_type") or "")
            self.answer.finished(STOP_TYPES.get(raw, raw))
            self.end()


@dataclass(frozen=True, slots=True)
class Served:
    """What a server says of its model."""

    vocabulary: Vocabulary | None = None
    context_tokens: int | None = None  # Of one slot: prompt and answer together.


class LlamaCppUpstream:
    """One llama.cpp server, which serves one model: the `model` of a request is not sent."""

    def __init__(
        self, address: str, *, key: str | None = None, deadlines: Deadlines | None = None, limits: Limits | None = None
    ) -> None:
        self.address = address.rstrip("/")
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.secrets = (key,) if key else ()
        self.deadlines = deadlines or Deadlines()
        self.limits = limits or Limits()
        self._served: Served | None = None

    def call(self, request: ChatRequest) -> LlamaCppCall:
        return LlamaCppCall(self, request)

    async def served(self, client: httpx.AsyncClient) -> Served:
        """Ask once what the server serves. If it does not tell, answers carry no token ids."""
        if self._served is None:
            try:
                self._served = await _read_served(client)
            except (UpstreamError, *MISSHAPEN) as exc:
                logger.warning("The vocabulary of %s cannot be read: %s", self.address, exc)
        return self._served or Served()


class LlamaCppCall:
    """
    Two stages: the prompt becomes ids, then an HttpCall streams the answer.

    Iterate it in one task; `close` may be called from any. Iteration that is ended by `close` raises
    UpstreamError `call_closed`.
    """

    def __init__(self, upstream: LlamaCppUpstream, request: ChatRequest) -> None:
        self._upstream = upstream
        self._request = request
        self._preparing: asyncio.Task[HttpCall] | None = None
        self._answer: HttpCall | None = None
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Chunk:
        if self._answer is None:
            self._answer = await self._prepared()
        return await anext(self._answer)

    async def close(self) -> bool:
        self._closed = True
        if self._preparing and not self._preparing.done():
            self._stop_preparing()
            await asyncio.wait({self._preparing})
        return await self._answer.close() if self._answer else True

    async def _prepared(self) -> HttpCall:
        if self._preparing is None and not self._closed:
            self._preparing = asyncio.create_task(self._prepare(), name="prepare llama.cpp call")
        if self._preparing is None:
            raise fault("call_closed")
        try:
            await asyncio.wait({self._preparing})
        except asyncio.CancelledError:
            self._stop_preparing()
            raise
        if self._preparing.cancelled() or (self._closed and self._preparing.exception() is None):
            raise fault("call_closed")
        return self._preparing.result()

    def _stop_preparing(self) -> None:
        # Once only: a task that is cancelled twice inside httpx leaves its connection behind.
        if self._preparing and not self._preparing.cancelling():
            self._preparing.cancel()

    async def _prepare(self) -> HttpCall:
        upstream = self._upstream
        deadlines = upstream.deadlines
        # Refused before anything is asked.
        build_body(self._request, ())
        check_headers(upstream.headers)
        try:
            async with asyncio.timeout(deadlines.first_byte_s), _client(upstream) as client:
                prompt = await _prompt_ids(client, self._request.messages)
                served = await upstream.served(client)
        except TimeoutError as exc:
            raise fault("first_byte_timeout") from exc
        except UpstreamError as exc:
            without_secrets(exc, upstream.secrets)
            raise
        except MISSHAPEN as exc:
            raise fault("not_a_stream", detail=f"{type(exc).__name__}: {exc}") from exc
        if served.context_tokens is not None and len(prompt) >= served.context_tokens:
            raise fault("context_too_long", detail=f"{len(prompt)} of {served.context_tokens} tokens")
        content = json.dumps(build_body(self._request, prompt)).encode()
        headers = {"Content-Type": "application/json", **upstream.headers}
        dialect = LlamaCpp(upstream.limits, served.vocabulary)
        return HttpCall(
            f"{upstream.address}/completion", headers, content, dialect,
            deadlines=deadlines, limits=upstream.limits, secrets=upstream.secrets,
        )  # fmt: skip


def _client(upstream: LlamaCppUpstream) -> httpx.AsyncClient:
    return client(
        upstream.address, base_url=upstream.address, headers=upstream.headers,
        timeout=httpx.Timeout(None, connect=upstream.deadlines.connect_s),
    )  # fmt: skip


async def _prompt_ids(client: httpx.AsyncClient, messages: Sequence[Message]) -> list[int]:
    """
    Render the messages and tokenize the result.

    The template is rendered with marks in the place of the contents, and contents are tokenized apart, as
    plain text: a message that holds the text `<|im_end|>` must not end its own turn.
    """
    marked = [{"role": m.role, "content": f"\ue0f0{n}\ue0f1"} for n, m in enumerate(messages)]
    template = (await _ask(client, "POST", "/apply-template", {"messages": marked}))["prompt"]
    frame = _MARK.split(template)
    texts = [messages[int(n)].content for n in frame[1::2]]
    if len(texts) < len(messages):
        raise fault("bad_request", detail="the chat template leaves messages out")
    around = await _tokenize(client, frame[0::2], special=True)
    inside = await _tokenize(client, texts, special=False)
    ids = list(around[0])
    for content, after in zip(inside, around[1:], strict=True):
        ids += [*content, *after]
    return ids


async def _tokenize(client: httpx.AsyncClient, texts: Sequence[str], *, special: bool) -> list[list[int]]:
    """Tokenize several texts in one request."""
    content: list[str | int] = []
    for text in texts:
        content += [text, _BORDER]
    answer = await _ask(
        client, "POST", "/tokenize", {"content": content, "add_special": False, "parse_special": special}
    )
    parts: list[list[int]] = [[]]
    for token in answer["tokens"]:
        if token == _BORDER:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts[:-1]


async def _read_served(client: httpx.AsyncClient) -> Served:
    meta = (await _ask(client, "GET", "/v1/models", None))["data"][0]["meta"]
    everything = {"content": list(range(meta["n_vocab"])), "with_pieces": True}
    pieces = [token["piece"] for token in (await _ask(client, "POST", "/tokenize", everything))["tokens"]]
    # What is no UTF-8 by itself comes as a list of bytes.
    vocabulary = Vocabulary([piece.encode() if isinstance(piece, str) else bytes(piece) for piece in pieces])
    return Served(vocabulary, meta.get("n_ctx"))


async def _ask(client: httpx.AsyncClient, method: str, path: str, body: object) -> dict[str, Any]:
    try:
        response = await client.request(method, path, json=body)
        if response.status_code != httpx.codes.OK:
            raise from_response(response.status_code, response.headers, response.content)
        answer = response.json()
    except httpx.ConnectTimeout as exc:
        raise fault("connect_timeout") from exc
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        raise from_httpx(exc) from exc
    except ValueError as exc:
        raise fault("not_a_stream", detail=f"{path}: {exc}") from exc
    if not isinstance(answer, dict):
        raise fault("not_a_stream", detail=f"{path}: {answer!r:.200}")
    return answer
