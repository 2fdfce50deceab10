"""Our words to a service's fields. What a service has no field for is refused before it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from streaming.upstream.faults import fault
from streaming.upstream.ports import Message

Fields: TypeAlias = Mapping[str, str]
Headers: TypeAlias = dict[str, str]
Check: TypeAlias = Callable[[Any], bool]
REASONING_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh")


def one_of(values: Iterable[str]) -> Check:
    allowed = frozenset(values)
    return lambda value: isinstance(value, str) and value in allowed


def between(low: float, high: float) -> Check:
    return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def _whole(low: int) -> Check:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= low


def _stops(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(stop, str) and stop for stop in value)


_CHECKS: Final[dict[str, Check]] = {
    "temperature": between(0, 2),
    "top_p": between(0, 1),
    "max_tokens": _whole(1),
    "seed": _whole(0),
    "stop": _stops,
    "presence_penalty": between(-2, 2),
    "frequency_penalty": between(-2, 2),
    "reasoning_effort": one_of(REASONING_EFFORTS),
}


def take_params(params: Mapping[str, Any], fields: Fields, checks: Mapping[str, Check] | None = None) -> dict[str, Any]:
    """
    Rename the parameters that are set; None means not set.

    Raises:
        UpstreamError: unsupported_parameter, with the name of the one that is unknown here or out of range.
    """
    taken = {}
    for name, value in params.items():
        if value is None:
            continue
        check = (checks or {}).get(name) or _CHECKS.get(name)
        if name not in fields or (check and not check(value)):
            raise fault("unsupported_parameter", parameter=name, detail=f"{name}={value!r}")
        taken[fields[name]] = list(value) if isinstance(value, tuple) else value
    return taken


def build_messages(messages: Iterable[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def split_system(messages: Iterable[Message]) -> tuple[str, list[Message]]:
    """Part the system prompt from the turns, for services that take it apart from them."""
    messages = list(messages)
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    return system, [message for message in messages if message.role != "system"]


def bearer(key: str, url: str, content: bytes) -> Headers:  # noqa: ARG001
    """Authorise as most services want it."""
    return {"Authorization": f"Bearer {key}"}
