"""Our words to a service's fields. What a service has no field for is refused before it is called."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from streaming.upstream.faults import fault
from streaming.upstream.ports import ChatRequest, Image, Message, Tool

Fields: TypeAlias = Mapping[str, str]
Headers: TypeAlias = dict[str, str]
Check: TypeAlias = Callable[[Any], bool]
# What a dialect may be able to express beyond text.
IMAGES: Final = "images"
TOOLS: Final = "tools"
JSON_SCHEMA: Final = "json_schema"
EVERYTHING: Final = frozenset({IMAGES, TOOLS, JSON_SCHEMA})
# What every service that reads images reads.
IMAGE_TYPES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
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


def check_extras(request: ChatRequest, able: Iterable[str] = EVERYTHING) -> None:
    """
    Check what a request holds beyond text against what a dialect is able to express.

    Raises:
        UpstreamError: unsupported_images, unsupported_tools or unsupported_json_schema.
    """
    images = [(message.role, image.media_type) for message in request.messages for image in message.images]
    wrong = [one for one in images if one[0] != "user" or one[1] not in IMAGE_TYPES]
    if wrong or (images and IMAGES not in able):
        raise fault("unsupported_images", detail=f"{wrong or images}")
    if request.tools and TOOLS not in able:
        raise fault("unsupported_tools")
    if request.answer_schema and JSON_SCHEMA not in able:
        raise fault("unsupported_json_schema")


def build_messages(
    messages: Iterable[Message], image: Callable[[Image], dict[str, Any]], text_type: str = "text"
) -> list[dict[str, Any]]:
    """Build messages of role and content: a text, or a list of parts where there are images."""
    return [
        {
            "role": message.role,
            "content": [*map(image, message.images), *text_parts(message.content, text_type)]
            if message.images
            else message.content,
        }
        for message in messages
    ]


def text_parts(text: str, kind: str = "text") -> list[dict[str, Any]]:
    """Give one part; none for an empty text, which several services refuse as a part."""
    return [{"type": kind, "text": text}] if text else []


def as_base64(image: Image) -> str:
    return base64.b64encode(image.data).decode()


def data_url(image: Image) -> str:
    return f"data:{image.media_type};base64,{as_base64(image)}"


def image_url_part(image: Image) -> dict[str, Any]:
    """Build an image as Chat Completions has it, and those who took after it."""
    return {"type": "image_url", "image_url": {"url": data_url(image)}}


def build_tools(tools: Sequence[Tool]) -> dict[str, Any]:
    """Build the member `tools` as Chat Completions has it; nothing where there are none."""
    return {"tools": [{"type": "function", "function": function(tool)} for tool in tools]} if tools else {}


def function(tool: Tool, parameters: str = "parameters") -> dict[str, Any]:
    """Build a function; `parameters` is what the service calls their schema."""
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, parameters: dict(tool.parameters)}


def split_system(messages: Iterable[Message]) -> tuple[str, list[Message]]:
    """Part the system prompt from the turns, for services that take it apart from them."""
    messages = list(messages)
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    return system, [message for message in messages if message.role != "system"]


def bearer(key: str, url: str, content: bytes) -> Headers:  # noqa: ARG001
    """Authorise as most services want it."""
    return {"Authorization": f"Bearer {key}"}
