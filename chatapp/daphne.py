"""Daphne as Sidestream wants it: its end harms nobody, and nobody's words break its log.

Its own end would cut every request and connection at once.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from typing import Any

from chatapp.inherited import heeded
from chatapp.leaving import leaving
from chatapp.logline import one_line, tell_uncaught

logger = logging.getLogger(__name__)

# `manage.py up` kills a web process five seconds after it told it to stop.
FINISH_S = 3.0
# What was written last, such as the close of a WebSocket, must still get out.
FLUSH_S = 0.5
_LOOK_AGAIN_S = 0.02


def leave_politely() -> None:
    """Under Daphne, answer SIGTERM and SIGINT by leaving; a second one ends the process at once."""
    if "daphne.server" not in sys.modules:
        return
    from twisted.internet import reactor  # noqa: PLC0415 - importing it elsewhere would install a reactor.

    typeless: Any = reactor  # Twisted's module is replaced at run time by the reactor itself.
    # Twisted installs its own handlers when it starts, and must not have the last word.
    typeless.callWhenRunning(_Departure(typeless).await_signals)


def log_visibly() -> None:
    """Under Daphne's command line, bring its access log, which is no logger's, into the form of all records."""
    if "daphne.cli" not in sys.modules:
        return
    from daphne import cli  # noqa: PLC0415 - importing it elsewhere would install a reactor.

    class OneLineAccessLog(cli.AccessLogGenerator):  # type: ignore[misc]
        def write_entry(self, host: str, date: Any, request: str, **more: Any) -> None:
            super().write_entry(one_line(str(host)), date, one_line(request), **more)

    cli.AccessLogGenerator = OneLineAccessLog
    tell_uncaught()


class _Departure:
    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._leaving: asyncio.Task[None] | None = None

    def await_signals(self) -> None:
        for number in heeded((signal.SIGTERM, signal.SIGINT)):
            signal.signal(number, lambda *_: self._reactor.callFromThread(self._told))

    def _told(self) -> None:
        if self._leaving is not None:
            self._reactor.stop()
            return
        self._leaving = asyncio.get_running_loop().create_task(self._leave(), name="leave")

    async def _leave(self) -> None:
        from chatapp.wiring import close_web  # noqa: PLC0415 - Django must be set up before.

        try:
            self._stop_listening()
            leaving.begin()
            try:
                async with asyncio.timeout(FINISH_S):
                    await leaving.alone()
            except TimeoutError:
                logger.warning("some requests were not done within %s s of being told to stop", FINISH_S)
            await close_web()
            await self._until_flushed()
        finally:
            self._reactor.stop()

    def _stop_listening(self) -> None:
        """Refuse new connections, so that a proxy in front takes another process for them."""
        from twisted.internet.tcp import Port  # noqa: PLC0415

        for reader in self._reactor.getReaders():
            if isinstance(reader, Port):
                reader.stopListening()  # type: ignore[no-untyped-call]

    async def _until_flushed(self) -> None:
        """Wait for the readers to hang up. One that keeps an idle connection does not hold up the end."""
        from twisted.internet.tcp import Server  # noqa: PLC0415

        for _ in range(int(FLUSH_S / _LOOK_AGAIN_S)):
            if not any(isinstance(one, Server) for one in self._reactor.getReaders()):
                return
            await asyncio.sleep(_LOOK_AGAIN_S)
