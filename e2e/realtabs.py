"""Tabs that know when they are hidden. Playwright tells every page that it is seen, so this goes to Chromium itself."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_REPLY_S = 10
_LONGEST_REPLY = 16 * 1024 * 1024
# Chromium reads commands from file descriptor 3 and writes answers to 4; this puts our pipes there, then becomes it.
_THROUGH_PIPES = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(read, 3), os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class DevToolsError(Exception):
    """Chromium refused a command."""


class RealBrowser:
    """A Chromium of its own, spoken to in the DevTools protocol over a pipe."""

    def __init__(self, commands: asyncio.StreamWriter, answers: asyncio.StreamReader) -> None:
        self._commands = commands
        self._answers = answers
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    async def open_tab(self, url: str) -> RealTab:
        """Open a tab in front of the others; those are hidden then."""
        target = (await self.send("Target.createTarget", {"url": url}))["targetId"]
        attached = await self.send("Target.attachToTarget", {"targetId": target, "flatten": True})
        return RealTab(self, target, attached["sessionId"])

    async def send(self, method: str, params: dict[str, Any], session: str = "") -> dict[str, Any]:
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        to = {"sessionId": session} if session else {}
        self._commands.write(json.dumps({"id": number, "method": method, "params": params, **to}).encode() + b"\0")
        answer = await asyncio.wait_for(self._waiting[number], _REPLY_S)
        if "error" in answer:
            raise DevToolsError(answer["error"]["message"])
        return dict(answer["result"])

    async def listen(self) -> None:
        """Hand out answers until the browser ends."""
        while True:
            try:
                message = json.loads((await self._answers.readuntil(b"\0"))[:-1])
            except asyncio.IncompleteReadError:
                return
            if "id" in message:
                self._waiting.pop(message["id"]).set_result(message)


@dataclass(frozen=True, slots=True)
class RealTab:
    browser: RealBrowser
    target: str
    session: str

    async def evaluate(self, expression: str) -> Any:
        params = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        answer = await self.browser.send("Runtime.evaluate", params, self.session)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def holds(self, expression: str) -> bool:
        """Say whether it is true in the page, which may be on its way still."""
        try:
            return bool(await self.evaluate(expression))
        except DevToolsError:
            return False

    async def set_lifecycle(self, state: str) -> None:
        """Freeze the tab, as a phone does to save energy, or make it active again."""
        await self.browser.send("Page.setWebLifecycleState", {"state": state}, self.session)

    async def to_front(self) -> None:
        await self.browser.send("Target.activateTarget", {"targetId": self.target})


@asynccontextmanager
async def real_browser(path: str, arguments: Sequence[str], profile: Path) -> AsyncIterator[RealBrowser]:
    """Run the Chromium at `path` until the block ends."""
    loop = asyncio.get_running_loop()
    (their_read, our_write), (our_read, their_write) = os.pipe(), os.pipe()
    options = ["--headless", "--remote-debugging-pipe", f"--user-data-dir={profile}", *arguments]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _THROUGH_PIPES, str(their_read), str(their_write), path, *options,
        pass_fds=(their_read, their_write), stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    os.close(their_read)
    os.close(their_write)
    answers = asyncio.StreamReader(limit=_LONGEST_REPLY)
    protocol = asyncio.StreamReaderProtocol(answers)
    reading, _ = await loop.connect_read_pipe(lambda: protocol, os.fdopen(our_read, "rb"))
    writing, _ = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(our_write, "wb"))
    browser = RealBrowser(asyncio.StreamWriter(writing, protocol, None, loop), answers)
    listening = asyncio.create_task(browser.listen())
    try:
        yield browser
    finally:
        await browser.send("Browser.close", {})
        await process.wait()
        await listening
        writing.close()
        reading.close()
