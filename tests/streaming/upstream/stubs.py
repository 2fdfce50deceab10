"""
A service of each dialect that checks how it is called, and goes wrong as it is told.

Names of faults are those of the table in streaming/upstream/README.md.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from jsonschema import Draft202012Validator

from streaming.upstream.dialects import DIALECTS, HttpUpstream
from streaming.upstream.http import Deadlines, Limits
from tests.streaming.upstream.request_schemas import SCHEMAS
from tests.streaming.upstream.server import Behaviour, Connection, answers, holds, repeats, sends, serving
from tests.streaming.upstream.speech import SPEECHES, Speech

# How long a stub's silence has to last, in seconds, until a deadline of a test's caller has passed.
TICK: Final = 0.05
ARGUMENTS: Final = ('{"city"', ': "Paris"}')
# A million take about a minute for each dialect; the suite takes a sample.
TINY_CHUNKS: Final = int(os.environ.get("SIDESTREAM_TINY_CHUNKS", "10000"))
LIMITS: Final = Limits(answer_chars=2 * TINY_CHUNKS + 1000)
LONGEST_LINE: Final = 10_000_000
DONE_SIGN: Final = b"data: [DONE]\n\n"
REASONS: Final = {
    401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 408: "Request Timeout", 409: "Conflict",
    413: "Content Too Large", 429: "Too Many Requests", 500: "Internal Server Error", 503: "Service Unavailable",
    529: "Site Overloaded",
}  # fmt: skip

Fault: TypeAlias = Callable[[Speech], Behaviour]


@dataclass(slots=True)
class Stub:
    """A running service."""

    upstream: HttpUpstream
    mistakes: list[str] = field(default_factory=list)  # What was wrong with the requests.


@asynccontextmanager
async def stub(
    adapter: str, behave: Fault, *, deadlines: Deadlines | None = None, reads_request: bool = True, tls: bool = False
) -> AsyncIterator[Stub]:
    """Run the service that `adapter` speaks with; `tls`: it is called by https, which it does not speak."""
    speech = SPEECHES[adapter]()
    found: list[str] = []

    async def checked(connection: Connection) -> None:
        found.extend(mistakes(speech, connection.request))
        await behave(speech)(connection)

    async with serving(checked if reads_request else behave(speech), reads_request=reads_request) as server:
        address = server.url.replace("http:", "https:") if tls else server.url
        upstream = HttpUpstream(
            DIALECTS[adapter], address, "the-key", deadlines=deadlines or Deadlines(), limits=LIMITS
        )
        yield Stub(upstream, found)


def mistakes(speech: Speech, request: bytes) -> list[str]:
    """Name what a provider would refuse of a request."""
    head, _, body = request.partition(b"\r\n\r\n")
    line, *headers = head.decode().split("\r\n")
    named = {header.partition(":")[0].lower(): header.partition(":")[2].strip() for header in headers}
    wanted = [
        (line, f"POST /v1{speech.path} HTTP/1.1"),
        (named.get("content-type"), "application/json"),
        (named.get("accept-encoding"), "identity"),
    ]
    if speech.adapter == "anthropic":
        wanted.append((named.get("anthropic-version"), "2023-06-01"))
    wrong = [f"got {got!r}, wanted {want!r}" for got, want in wanted if got != want]
    if speech.key_header not in headers:
        wrong.append(f"{speech.key_header.partition(':')[0]} is missing")
    found = Draft202012Validator(SCHEMAS[speech.adapter]).iter_errors(json.loads(body))
    return wrong + [f"{error.json_path}: {error.message[:300]}" for error in found]


def head(speech: Speech, **headers: str) -> bytes:
    named = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 200 OK\r\nContent-Type: {speech.content_type}\r\n{named}\r\n".encode()


def whole(speech: Speech) -> Behaviour:
    return sends(head(speech), speech.answer("Hello", " world"))


def calls_tool(speech: Speech) -> Behaviour:
    return sends(head(speech), speech.tool_answer(*ARGUMENTS))


def status(code: int, **headers: str) -> Fault:
    return lambda speech: answers(
        f"{code} {REASONS[code]}", speech.error_body(code), Content_Type="application/json", **headers
    )


def _compressed(speech: Speech, *, share: float = 1) -> Behaviour:
    data = gzip.compress(speech.answer("Hello"))
    return sends(head(speech, Content_Encoding="gzip"), data[: round(len(data) * share)])


def _cut(speech: Speech) -> Behaviour:
    """End cleanly where the tool's arguments could be taken for whole."""
    return sends(head(speech), speech.begin() + speech.tool(*ARGUMENTS))


def _torn(speech: Speech) -> Behaviour:
    """Break the connection in the middle of a chunk of the transfer encoding."""
    return sends(head(speech, Transfer_Encoding="chunked"), b"ffff\r\n" + speech.begin() + speech.text("Hello"))


def _long_line(speech: Speech) -> Behaviour:
    return sends(head(speech), speech.begin() + speech.text("Hello"), speech.text("x" * LONGEST_LINE))


def _tiny_chunks(speech: Speech) -> Behaviour:
    return sends(head(speech), speech.begin(), speech.text("x") * TINY_CHUNKS, speech.finish() + speech.end)


def _under_its_type(body: bytes) -> Fault:
    """Send this, and say that it is a stream."""
    return lambda speech: answers("200 OK", body, Content_Type=speech.content_type)


# What a service may do, by its name in the table.
FAULTS: Final[dict[str, Fault]] = {
    **{f"status {code}": status(code) for code in REASONS},
    "status 429 with Retry-After": status(429, Retry_After="7"),
    "a web page": lambda _: answers("200 OK", b"<!doctype html><p>Welcome", Content_Type="text/html"),
    "a picture": lambda _: answers("200 OK", b"\x89PNG", Content_Type="image/png"),
    "a web page under a stream's type": _under_its_type(b"<!doctype html>\n<p>Welcome, sign in: id: 7"),
    "plain words under a stream's type": _under_its_type(b"no healthy upstream"),
    "JSON that is no answer": _under_its_type(b'{"detail": "Not authenticated"}'),
    "JSON that says an error in another form": _under_its_type(b'{"code": 401, "msg": "invalid api key"}'),
    "an empty body": _under_its_type(b""),
    "a whole answer, compressed without saying so": lambda speech: sends(
        head(speech), gzip.compress(speech.answer("Hello"))
    ),
    "a whole answer, compressed": _compressed,
    "a truncated compressed answer": lambda speech: _compressed(speech, share=0.5),
    "no TLS where TLS is expected": lambda _: sends(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "silence instead of a connection": lambda _: holds(),
    "silence before the head": lambda _: holds(),
    "silence after the head": lambda speech: holds(head(speech)),
    "silence after some text": lambda speech: holds(head(speech), speech.begin() + speech.text("Hello")),
    "keep-alives after some text": lambda speech: repeats(
        head(speech) + speech.begin() + speech.text("Hello"), speech.comment, TICK / 5
    ),
    "empty events after some text": lambda speech: repeats(
        head(speech) + speech.begin() + speech.text("Hello"), speech.empty, TICK / 5
    ),
    "a slow drip without end": lambda speech: repeats(head(speech) + speech.begin(), speech.text("x"), TICK / 5),
    "a line of 10 MB": _long_line,
    "thousands of tiny chunks": _tiny_chunks,
    "a clean end behind a tool call's arguments": _cut,
    "`[DONE]` in the place of its own end": lambda speech: sends(
        head(speech), speech.begin(), speech.text("Hello"), DONE_SIGN
    ),
    "text where nobody reads it": lambda speech: sends(
        head(speech), speech.begin(), speech.text("Hello"), speech.unheard_of("!"), speech.finish(), speech.end
    ),
    "a connection that breaks": _torn,
    "an error after some text": lambda speech: sends(
        head(speech), speech.begin(), speech.text("Hello"), speech.error()
    ),
    "an error after the finish": lambda speech: sends(
        head(speech), speech.begin(), speech.text("Hello"), speech.finish(), speech.error()
    ),
    "a finish that is none": lambda speech: sends(
        head(speech), speech.begin(), speech.text("Hello"), speech.finish(), speech.text(" world"), speech.finish(),
        speech.end,
    ),
}  # fmt: skip
# What makes a fault show in a test's time; the others come by themselves.
DEADLINES: Final[dict[str, Deadlines]] = {
    "silence instead of a connection": Deadlines(connect_s=TICK),
    "silence before the head": Deadlines(first_byte_s=TICK),
    "silence after the head": Deadlines(first_byte_s=TICK),
    "silence after some text": Deadlines(idle_s=TICK),
    "keep-alives after some text": Deadlines(payload_idle_s=4 * TICK),
    "empty events after some text": Deadlines(payload_idle_s=4 * TICK),
    "a slow drip without end": Deadlines(total_s=4 * TICK),
}
OVER_TLS: Final = {"no TLS where TLS is expected", "silence instead of a connection"}


def options(fault: str) -> dict[str, Any]:
    """Give how a stub has to be run for a fault."""
    tls = fault in OVER_TLS
    return {"deadlines": DEADLINES.get(fault), "tls": tls, "reads_request": not tls}
