"""Lines out of the bytes that processes print, made safe for a terminal. Pure."""

from __future__ import annotations

from chatapp.unseen import visible

# A line without an end must not grow without one either.
MAX_LINE_BYTES = 16 * 1024
_COLOURS = ("36", "33", "32", "35", "34", "31")


class LineSplitter:
    """Collects bytes in any cuts and gives whole lines."""

    def __init__(self) -> None:
        self._open = bytearray()

    def feed(self, data: bytes) -> list[str]:
        """Give the lines that are whole now; what is over-long is cut into several."""
        self._open += data
        *whole, rest = self._open.split(b"\n")
        while len(rest) > MAX_LINE_BYTES:
            whole.append(rest[:MAX_LINE_BYTES])
            rest = rest[MAX_LINE_BYTES:]
        self._open = rest
        return [_readable(piece) for line in whole for piece in _pieces(line)]

    def finish(self) -> list[str]:
        """Give the last line if it had no end."""
        rest, self._open = self._open, bytearray()
        return [_readable(rest)] if rest else []


def prefixed(name: str, text: str, width: int, colour: int | None = None) -> str:
    """Put the process's name before a line; `colour` counts the processes, None means no colours."""
    label = f"{name:<{width}} |"
    if colour is not None:
        label = f"\x1b[{_COLOURS[colour % len(_COLOURS)]}m{label}\x1b[0m"
    return f"{label} {text}"


def _pieces(line: bytearray) -> list[bytearray]:
    return [line[at : at + MAX_LINE_BYTES] for at in range(0, len(line), MAX_LINE_BYTES)] or [line]


def _readable(line: bytearray) -> str:
    # It may quote what a model or a browser sent: an escape sequence in it would command the terminal.
    return visible(line.decode("utf-8", errors="replace").rstrip("\r"))
