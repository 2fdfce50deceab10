"""How long to wait before a process that ended is started again. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """
    Doubles from `first_s` to `cap_s`, less up to half of it by chance.

    The first wait is short, because a page stands still while Redis or the web server is away. The
    chance keeps processes that died together from starting together on a small machine.
    """

    first_s: float = 0.2
    cap_s: float = 15.0
    settled_s: float = 30.0  # Whoever ran this long has recovered: what went before is forgotten.

    def failures(self, before: int, ran_s: float) -> int:
        """Count the failures in a row, now that a process ended after `ran_s`."""
        return 1 if ran_s >= self.settled_s else before + 1

    def delay_s(self, failures: int, chance: float) -> float:
        """Give the wait after `failures` (from 1) in a row; `chance` is from 0 up to 1."""
        # The exponent is bounded so that a thousand failures don't overflow a float.
        whole = min(self.cap_s, self.first_s * 2.0 ** min(failures - 1, 32))
        return whole * (1 - chance / 2)
