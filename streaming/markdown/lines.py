"""Complete lines of growing text."""

from __future__ import annotations

import re

from streaming.markdown.clean import clean

LINE_END = re.compile(r"\r\n|\n|\r")


class Lines:
    """
    The complete lines so far, cleaned, each with `\\n` at its end.

    `ends[i]` is where line i ends in the text as it came, in code points.
    """

    def __init__(self) -> None:
        self.all: list[str] = []
        self.ends: list[int] = []
        self.length = 0  # Of all text fed.
        self._rest: list[str] = []  # Pieces of the line that is not complete.
        self._rest_at = 0

    def feed(self, text: str) -> list[str]:
        """Take more text; give the lines that it completed."""
        self.length += len(text)
        # A CR at the end may be half of a line end; what comes next tells.
        ready = "\n" in text or "\r" in text or bool(self._rest and self._rest[-1].endswith("\r"))
        self._rest.append(text)
        return self._take() if ready else []

    def flush(self) -> None:
        """No more text will come: what is left is a line, too."""
        rest = "".join(self._rest)
        self._rest.clear()
        if rest:
            self.all.append(clean(LINE_END.sub("\n", rest)))
            self.ends.append(self.length)

    def _take(self) -> list[str]:
        text, known, start = "".join(self._rest), len(self.all), 0
        for found in LINE_END.finditer(text):
            if found[0] == "\r" and found.end() == len(text):
                break
            self.all.append(clean(text[start : found.start()]) + "\n")
            start = found.end()
            self.ends.append(self._rest_at + start)
        self._rest = [text[start:]] if start < len(text) else []
        self._rest_at += start
        return self.all[known:]
