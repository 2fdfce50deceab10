"""
The scripted upstream as a process of its own: `python -m streaming.upstream.scripted_server --port 9000`.

It speaks Chat Completions at POST /v1/chat/completions; `model` is `script` or `script@rate`. GET /stats is its
own account of who called and how each call ended, which a test compares with what the caller believes:

    {"started", <outcome>: how many …, "calls": [{"n", "model", "prompt", "asked", "host", "outcome", "frames",
     "opened_at", "closed_at" (epoch ms), "opened_mono", "closed_mono" (ms of the machine's monotonic clock)}]}

`asked` is all that the person said, the last of which is the prompt; `host` the address that the call was
made to. The outcomes:

    finished    the script's finish was written, and nothing follows it
    reported    the script reported an error inside the stream
    cut         the response ended in an orderly way without a finish
    reset       the connection was closed in the middle of the response
    refused     there was no stream
    aborted     the caller closed its connection before any of these
    open        it is still going on

POST /reset empties the account of everything that has ended. GET /health answers 200.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from streaming.events import dumps
from streaming.upstream.script import Refusal, Script, split_model
from streaming.upstream.scripted import SCRIPTS, load_scripts
from streaming.upstream.scripted_wire import Ending, Frame, frames

LARGEST_REQUEST_BYTES = 16 * 1024 * 1024
PROMPT_CHARS_KEPT = 200
OPEN, ABORTED, REFUSED = "open", "aborted", "refused"
OUTCOMES = (*(ending.value for ending in Ending), REFUSED, ABORTED, OPEN)
# Then other connections get their turn, and this one may find out that its caller reads too slowly.
MOST_BYTES_AT_ONCE = 64 * 1024
LAST_PIECE = b"0\r\n\r\n"


@dataclass(slots=True)
class Record:
    """One call in the account."""

    n: int
    model: str
    prompt: str
    asked: tuple[str, ...]
    host: str
    opened_at: float
    opened_mono: float
    outcome: str = OPEN
    frames: int = 0  # Written, the head included.
    closed_at: float | None = None
    closed_mono: float | None = None

    def close(self, outcome: str) -> None:
        self.outcome = outcome
        self.closed_at, self.closed_mono = time.time() * 1000, time.monotonic() * 1000


class Account:
    def __init__(self) -> None:
        self.records: list[Record] = []
        self._number = 0

    def open(self, model: str, asked: Sequence[str], host: str) -> Record:
        self._number += 1
        kept = tuple(one[:PROMPT_CHARS_KEPT] for one in asked)
        prompt = kept[-1] if kept else ""
        record = Record(self._number, model, prompt, kept, host, time.time() * 1000, time.monotonic() * 1000)
        self.records.append(record)
        return record

    def reset(self) -> None:
        self.records = [record for record in self.records if record.outcome == OPEN]

    def to_dict(self) -> dict[str, Any]:
        outcomes = [record.outcome for record in self.records]
        counts = {name: outcomes.count(name) for name in OUTCOMES}
        return {"started": len(outcomes), **counts, "calls": [asdict(record) for record in self.records]}


class Play:
    """Writes one script's frames at their times; one timer, whatever the rate."""

    def __init__(
        self, script_frames: Iterator[Frame], record: Record, transport: asyncio.Transport, done: Callable[[], None]
    ) -> None:
        self._frames = script_frames
        self._record = record
        self._transport = transport
        self._done = done
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time()
        self._next: bytes | Ending = b""
        self._paused = False
        self._timer: asyncio.Handle | None = self._loop.call_soon(self._proceed)

    def pause(self) -> None:
        """The caller reads too slowly; what is due waits, as in any server that does not buffer."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._proceed()

    def abort(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._record.close(ABORTED)

    def _proceed(self) -> None:
        """Write what is due by now, many frames at once, then set the timer for what comes next."""
        if self._timer:
            self._timer.cancel()
        self._timer = None
        ready = bytearray()
        while self._due <= self._loop.time() and len(ready) < MOST_BYTES_AT_ONCE:
            if isinstance(self._next, Ending):
                self._finish(bytes(ready), self._next)
                return
            ready += self._next
            self._record.frames += bool(self._next)
            wait, self._next = next(self._frames)
            self._due += wait
        if ready:
            self._transport.write(bytes(ready))  # May call pause.
        if not self._paused and self._due < math.inf:
            self._timer = self._loop.call_at(self._due, self._proceed)

    def _finish(self, rest: bytes, ending: Ending) -> None:
        self._record.close(ending.value)
        self._transport.write(rest if ending is Ending.RESET else rest + LAST_PIECE)
        if ending is Ending.RESET:
            self._transport.close()  # Chunked transfer without its last piece: the caller sees a broken connection.
        self._done()


class Connection(asyncio.Protocol):
    """HTTP/1.1, as much of it as one well-behaved client needs."""

    def __init__(self, scripts: Mapping[str, Script], account: Account) -> None:
        self._scripts = scripts
        self._account = account
        self._received = bytearray()
        self._play: Play | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  # For the type: TCP servers give no other.
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if self._play:
            self._play.abort()
            self._play = None

    def pause_writing(self) -> None:
        if self._play:
            self._play.pause()

    def resume_writing(self) -> None:
        if self._play:
            self._play.resume()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, rest = self._received.partition(b"\r\n\r\n")
        if not found or self._play:
            return
        line, *fields = head.decode("latin-1").split("\r\n")
        length = int(_field(fields, "content-length") or 0)
        if length > LARGEST_REQUEST_BYTES:
            self._answer(413, {"error": {"message": "too large"}})
            self._transport.close()
        elif len(rest) >= length:
            self._received = rest[length:]
            method, target, _ = line.split(" ", 2)
            self._route(method, target, _field(fields, "host"), bytes(rest[:length]))

    def _route(self, method: str, target: str, host: str, body: bytes) -> None:
        match method, target.partition("?")[0]:
            case "POST", path if path.endswith("/chat/completions"):
                self._complete(host, body)
            case "GET", "/stats":
                self._answer(200, self._account.to_dict())
            case "POST", "/reset":
                self._account.reset()
                self._answer(200, {})
            case "GET", "/health":
                self._answer(200, {"status": "ok"})
            case _:
                self._answer(404, {"error": {"message": "no such route"}})

    def _complete(self, host: str, body: bytes) -> None:
        try:
            request = json.loads(body)
            model, messages = str(request["model"]), request["messages"]
            asked = [str(m["content"]) for m in messages if m["role"] == "user"]
            most = request.get("max_tokens")
        except (ValueError, KeyError, TypeError, AttributeError):
            self._answer(400, {"error": {"message": "expected a Chat Completions request", "code": "bad_request"}})
            return
        record = self._account.open(model, asked, host)
        name, rate = split_model(model)
        script = self._scripts.get(name, Script(name, name, (), refusal=Refusal(HTTPStatus.NOT_FOUND)))
        if script.refusal:
            record.close(REFUSED)
            self._refuse(script.refusal)
        else:
            prompt = asked[-1] if asked else ""
            played = frames(script, prompt, call=record.n, model=name, rate=rate, max_pieces=most)
            self._play = Play(played, record, self._transport, self._played)

    def _played(self) -> None:
        self._play = None

    def _refuse(self, refusal: Refusal) -> None:
        wait = {} if refusal.retry_after_s is None else {"Retry-After": f"{refusal.retry_after_s:g}"}
        self._answer(refusal.status, {"error": {"message": "refused by the script", "code": None}}, wait)

    def _answer(self, status: int, value: object, headers: Mapping[str, str] | None = None) -> None:
        body = dumps(value).encode()
        fields = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
        head = "".join(f"{name}: {text}\r\n" for name, text in fields.items())
        self._transport.write(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}\r\n".encode() + body)


def _field(fields: Sequence[str], name: str) -> str:
    """Give the value of a request's header field, empty when there is none."""
    return next((field.partition(":")[2].strip() for field in fields if field.lower().startswith(f"{name}:")), "")


async def serve(scripts: Mapping[str, Script], host: str, port: int) -> asyncio.Server:
    account = Account()
    return await asyncio.get_running_loop().create_server(
        lambda: Connection(scripts, account), host, port, backlog=1024
    )


async def _run(args: argparse.Namespace) -> None:
    server = await serve(load_scripts(args.scripts), args.host, args.port)
    host, port = server.sockets[0].getsockname()[:2]
    sys.stdout.write(f"Scripted upstream is ready at http://{host}:{port}\n")
    sys.stdout.flush()
    await server.serve_forever()


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m streaming.upstream.scripted_server")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one and prints it")
    parser.add_argument("--scripts", type=Path, default=SCRIPTS, help="a folder of script files")
    asyncio.run(_run(parser.parse_args(argv)))


if __name__ == "__main__":
    main()
