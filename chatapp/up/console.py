"""Where `up` and its processes write."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Final, TextIO

from chatapp.up.lines import prefixed

OWN_NAME: Final = "up"
# A disk that is full, or a reader that is slow, may take the next line again.
_PASSING: Final = (errno.ENOSPC, errno.EDQUOT, errno.EAGAIN)


class Console:
    """Writes whole lines, each with its process's name; in colour only on a terminal."""

    def __init__(self, out: TextIO, names: Sequence[str]) -> None:
        self._out = out
        self._names = (*names, OWN_NAME)
        self._width = max(map(len, self._names))
        self._coloured = out.isatty() and not os.environ.get("NO_COLOR")
        self._gone = False

    def say(self, text: str) -> None:
        """Write a line of `up` itself."""
        self.log(OWN_NAME, text)

    def log(self, name: str, text: str) -> None:
        """Write a line that the process `name` printed."""
        colour = self._names.index(name) if self._coloured else None
        self.plain(prefixed(name, text, self._width, colour))

    def plain(self, text: str) -> None:
        """Write a line as it is."""
        if self._gone:
            return
        try:
            self._out.write(f"{text}\n")
            self._out.flush()
        except OSError as exc:
            # Whoever read the output has left (a closed terminal, `| head`). That is no reason to
            # take down a running service; a terminal that hangs up sends SIGHUP as well.
            self._gone = exc.errno not in _PASSING

    def close(self) -> None:
        """Write no more. What could not be written is dropped, or the interpreter would fail over it at its end."""
        try:
            self._out.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._out.fileno())
            os.close(nowhere)
