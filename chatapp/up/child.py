"""One process: started in a group of its own, its output read, ended for certain."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable

from chatapp.up.console import Console
from chatapp.up.lines import LineSplitter
from chatapp.up.service import Service

_PR_SET_PDEATHSIG = 1  # From linux/prctl.h.
_READ_BYTES = 64 * 1024


class Child:
    """
    A running process of a service.

    Whoever starts one awaits `wait` or `end`. Its standard output and errors go to the console line
    by line, for as long as it lives and until all it had written is read.
    """

    def __init__(self, service: Service, process: Process, console: Console, output: int) -> None:
        self._service = service
        self._process = process
        self._console = console
        self._output = output
        self._lines = LineSplitter()
        self._over = False
        asyncio.get_running_loop().add_reader(output, self._read)

    @classmethod
    async def start(cls, service: Service, console: Console, keep_open: tuple[int, ...] = ()) -> Child:
        """
        Start the service's command.

        The process inherits the file descriptors `keep_open`. It is given a pipe of ours instead of
        asyncio's, because asyncio's `wait` would also wait for whatever inherited that pipe.

        Raises:
            OSError: the command cannot be run.
        """
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        try:
            process = await asyncio.create_subprocess_exec(
                *service.command,
                stdin=DEVNULL, stdout=theirs, stderr=theirs,
                cwd=service.folder, env=dict(service.env), pass_fds=keep_open,
                # A group of its own: Ctrl-C reaches only `up`, which then ends all in order.
                start_new_session=True,
                preexec_fn=_before_command(os.getpid()),
            )  # fmt: skip
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        return cls(service, process, console, ours)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait(self) -> int:
        """Wait for the end and give the exit code, negative for a signal."""
        code = await self._process.wait()
        if not self._over:
            # What the process started and left behind has no one else to end it.
            self._signal(signal.SIGKILL)
            # From here on the system may give its number to a stranger.
            self._over = True
            self._close()
        return code

    async def end(self) -> None:
        """Ask it to end; after its grace period, make it. Takes at most that long and a moment."""
        self._signal(signal.SIGTERM)
        # Not asyncio.timeout: on Python 3.11 it does not end inside a task that is being cancelled.
        ending = asyncio.create_task(self.wait())
        await asyncio.wait([ending], timeout=self._service.grace_s)
        if not ending.done():
            self._console.say(f"{self._service.name} did not end within {self._service.grace_s:g} s; killing it")
            self.kill()
        await ending

    def kill(self) -> None:
        """End it now. `wait` or `end` still has to be awaited."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._over:
            return
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            # The group is gone already; macOS says "not permitted" of one that holds only a zombie.
            return

    def _read(self) -> bool:
        try:
            data = os.read(self._output, _READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            asyncio.get_running_loop().remove_reader(self._output)
        for line in self._lines.feed(data):
            self._console.log(self._service.name, line)
        return bool(data)

    def _close(self) -> None:
        while self._read():
            pass
        for line in self._lines.finish():
            self._console.log(self._service.name, line)
        asyncio.get_running_loop().remove_reader(self._output)
        os.close(self._output)


def _before_command(parent: int) -> Callable[[], None]:
    """
    Give what a new process does before it runs its command: it is started as a login shell would start it.

    It must not outlive `parent`. Only Linux can see to this. Elsewhere the processes left behind by a `kill -9` of
    `up` still hold its lock, so that the next `up` names them instead of starting a second set.
    """
    # Looked up here, since little is safe to do between fork and exec.
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
    ignored = [number for number in signal.valid_signals() if signal.getsignal(number) == signal.SIG_IGN]

    def prepare() -> None:
        # What `up` ignores because its own parent did is no wish of the process: SIGTERM must end it, for one.
        for number in ignored:
            signal.signal(number, signal.SIG_DFL)
        if prctl:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # It died in between, so no signal will come.
                os._exit(1)

    return prepare
