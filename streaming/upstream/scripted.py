"""An upstream that plays script files in this process: no network, no key, always the same answer."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from streaming.errors import UpstreamError
from streaming.upstream.deadlines import Deadlines, Watchdog
from streaming.upstream.faults import fault, reported
from streaming.upstream.http_faults import from_response
from streaming.upstream.ports import ChatRequest, Chunk, FinishChunk, Opened
from streaming.upstream.script import Beat, Cut, Pause, Rate, Refusal, Report, Script, split_model
from streaming.upstream.script_file import parse_script

SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(slots=True)
class Calls:
    """The account of an upstream: what its callers did."""

    started: int = 0
    finished: int = 0  # Ended by the script: a finish, an error, a cut, a refusal.
    closed: int = 0  # Ended by the caller before that, or by a deadline.
    requests: list[ChatRequest] = field(default_factory=list)  # Kept only if the upstream was told to.

    @property
    def open(self) -> int:
        return self.started - self.finished - self.closed


def load_scripts(folder: Path = SCRIPTS) -> dict[str, Script]:
    """
    Read every script of a folder; a script's name is its file's.

    Raises:
        ScriptError: one of them has mistakes.
    """
    return {path.stem: parse_script(path.stem, path.read_text("utf-8")) for path in sorted(folder.glob("*.toml"))}


class ScriptedUpstream:
    """
    `model` is a script's name, or `name@rate` to play it at so many pieces a second.

    Of the parameters only `max_tokens` means something here: the answer ends with finish `length`
    after so many pieces.
    """

    def __init__(
        self, scripts: Mapping[str, Script], *, deadlines: Deadlines | None = None, keep_requests: bool = False
    ) -> None:
        self.calls = Calls()
        self._scripts = scripts
        self._deadlines = deadlines or Deadlines()
        self._keep_requests = keep_requests

    def call(self, request: ChatRequest) -> ScriptedCall:
        if self._keep_requests:
            self.calls.requests.append(request)
        name, rate = split_model(request.model)
        script = self._scripts.get(name, Script(name, name, (), refusal=Refusal(404)))
        return ScriptedCall(script, rate, request, self.calls, self._deadlines)


class ScriptedCall:
    """
    One play of a script.

    Iteration that is ended by `close` raises UpstreamError `call_closed`, as HttpCall's does.
    """

    def __init__(
        self, script: Script, rate: float | None, request: ChatRequest, account: Calls, deadlines: Deadlines
    ) -> None:
        self._script = script
        self._request = request
        self._beats: Iterator[Beat] = iter(())  # From the opening on, when the call has its number.
        self._fixed_rate = rate
        self._gap = 1 / (rate or script.rate)
        self._account = account
        self._watchdog = Watchdog(deadlines, lambda code: self._fail(fault(code)))
        self._due = 0.0
        self._pause: asyncio.Future[None] | None = None
        self._failure: UpstreamError | None = None
        self._started = False
        self._ended = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Chunk:
        if self._failure:
            raise self._failure
        if self._ended:
            raise StopAsyncIteration
        try:
            chunk = await self._next() if self._started else await self._open()
        except UpstreamError as exc:
            self._failure = exc
            self._end(by_script=True)
            raise
        except BaseException:  # The task was cancelled: the caller's doing.
            self._end(by_script=False)
            raise
        if isinstance(chunk, FinishChunk):
            self._end(by_script=True)
        return chunk

    async def close(self) -> bool:
        self._fail(fault("call_closed"))
        return True

    async def _open(self) -> Chunk:
        self._account.started += 1
        self._started = True
        prompt = next((m.content for m in reversed(self._request.messages) if m.role == "user"), "")
        most = self._request.params.get("max_tokens")
        self._beats = self._script.beats(prompt, most, call=self._account.started)
        self._watchdog.start()
        self._watchdog.connected()
        await self._wait(self._script.open_after_s)
        if self._script.refusal:
            status, seconds = self._script.refusal.status, self._script.refusal.retry_after_s
            headers = {} if seconds is None else {"retry-after": str(seconds)}
            raise from_response(status, headers, b"refused by the script")
        self._due = asyncio.get_running_loop().time()
        return Opened()

    async def _next(self) -> Chunk:
        self._watchdog.reading()
        for beat in self._beats:
            match beat:
                case Pause(seconds=seconds):
                    self._due += seconds
                case Rate(per_second=rate):
                    self._gap = 1 / (self._fixed_rate or rate)
                case _:
                    self._due += self._gap
                    await self._wait(self._due - asyncio.get_running_loop().time())
                    self._watchdog.heard(payload=True)
                    return _chunk(beat)
        # Only silence for ever has no end of its own: close, a deadline or a cancellation ends it.
        await self._wait(math.inf)
        raise AssertionError("silence for ever ended")

    async def _wait(self, seconds: float) -> None:
        """Let time pass, also none: other tasks get their turn. Raises what `close` or a deadline left."""
        loop = asyncio.get_running_loop()
        self._pause = loop.create_future()
        timer = None if math.isinf(seconds) else loop.call_later(max(seconds, 0), _wake, self._pause)
        try:
            await self._pause
        finally:
            if timer:
                timer.cancel()
            self._pause = None
        if self._failure:
            raise self._failure

    def _fail(self, error: UpstreamError) -> None:
        """Let the first failure stand, and end a pause at once. After the end it changes nothing."""
        if self._ended or self._failure:
            return
        self._failure = error
        if self._started:
            self._end(by_script=False)
        if self._pause:
            _wake(self._pause)

    def _end(self, *, by_script: bool) -> None:
        self._watchdog.stop()
        if self._ended:
            return
        self._ended = True
        if by_script:
            self._account.finished += 1
        else:
            self._account.closed += 1


def _chunk(beat: Chunk | Report | Cut) -> Chunk:
    match beat:
        case Report(message=message, code=code):
            raise reported((code,), message, said=message)
        case Cut(kind=kind):
            raise fault("incomplete_stream" if kind == "end" else "connection_lost")
        case chunk:
            return chunk


def _wake(pause: asyncio.Future[None]) -> None:
    if not pause.done():
        pause.set_result(None)
