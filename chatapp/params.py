"""The parameters a pane may set, in our words, with their ranges. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from chatapp.errors import Problem

Check: TypeAlias = Callable[[Any], str | None]

EFFORTS = ("none", "minimal", "low", "medium", "high")
MAX_STOPS, MAX_STOP_LENGTH = 4, 100


def check_params(params: Mapping[str, Any], field: str) -> dict[str, Any]:
    """
    Give the parameters that were set; null means not set.

    Raises:
        Problem: a name is unknown, or a value out of range (`invalid_param`).
    """
    given = {name: value for name, value in params.items() if value is not None}
    for name, value in given.items():
        wanted = CHECKS[name](value) if name in CHECKS else f"one of {', '.join(sorted(CHECKS))}"
        if wanted is not None:
            subject = f"{name} must be" if name in CHECKS else f"{name[:40]} is not a parameter; use"
            raise Problem("invalid_param", f"{subject} {wanted}.", field=f"{field}.{name[:40]}")
    return given


def _number(low: float, high: float) -> Check:
    def check(value: Any) -> str | None:
        # NaN and the infinities fail the comparison.
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return None if is_number and low <= value <= high else f"a number from {low:g} to {high:g}"

    return check


def _integer(low: int, high: int) -> Check:
    def check(value: Any) -> str | None:
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        return None if is_integer and low <= value <= high else f"a whole number from {low} to {high}"

    return check


def _effort(value: Any) -> str | None:
    return None if value in EFFORTS else f"one of {', '.join(EFFORTS)}"


def _stops(value: Any) -> str | None:
    fits = isinstance(value, list) and len(value) <= MAX_STOPS and all(_is_stop(stop) for stop in value)
    return None if fits else f"a list of up to {MAX_STOPS} texts of 1 to {MAX_STOP_LENGTH} characters"


def _is_stop(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_STOP_LENGTH


# The ranges are the widest that a dialect takes; an upstream may refuse more, and says so then.
CHECKS: dict[str, Check] = {
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "top_k": _integer(0, 1_000_000),
    "min_p": _number(0, 1),
    "repeat_penalty": _number(0.01, 2),
    "max_tokens": _integer(1, 1_000_000),
    "seed": _integer(0, 2**31 - 1),
    "stop": _stops,
    "presence_penalty": _number(-2, 2),
    "frequency_penalty": _number(-2, 2),
    "reasoning_effort": _effort,
}
