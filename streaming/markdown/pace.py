"""How often a growing text may be parsed, and its open block be shown anew."""

from __future__ import annotations

# The open block is shown anew at most this often; faster is not seen, only paid for.
OPEN_INTERVAL_MS = 250
# An open block below this many code points is shown whenever it has a new line …
SMALL_BLOCK = 2048
# … and a larger one when it has grown by half.
GROWN = 1.5
# All showings of open blocks together have about this much HTML, plus this share of the text: sealed
# blocks, deltas and showings must stay below three times the text in the log.
OPEN_ALLOWANCE = 8192
OPEN_SHARE = 0.5
# All parsing together reads at most this many times the text, plus the allowance. Text is parsed
# once to be sealed and about once to be shown; the rest is for guesses that prove wrong.
WORK_ALLOWANCE = 16_384
WORK_SHARE = 4


class Pace:
    """Keeps work and output linear in the length of the text, whatever the text and the clock."""

    def __init__(self) -> None:
        self.parsed = 0
        self._work = WORK_ALLOWANCE
        self._html = float(OPEN_ALLOWANCE)
        self._shown_at: int | None = None
        self._shown_size = 0

    def grew(self, size: int) -> None:
        self._work += WORK_SHARE * size
        self._html += OPEN_SHARE * size

    def may_parse(self, size: int) -> bool:
        return self._work >= size

    def parse(self, size: int) -> None:
        self.parsed += size
        self._work -= size

    def may_show(self, size: int, now_ms: int) -> bool:
        rested = self._shown_at is None or now_ms - self._shown_at >= OPEN_INTERVAL_MS
        worth = size < SMALL_BLOCK or size >= GROWN * self._shown_size
        return rested and worth and self._html >= size

    def show(self, size: int, html: str, now_ms: int) -> None:
        self._html -= len(html)
        self._shown_at, self._shown_size = now_ms, size

    def new_block(self) -> None:
        """The open block is another one: its size is compared with nothing."""
        self._shown_size = 0
