"""Request bodies, from bytes to checked values. Pure."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from dataclasses import dataclass, field
from typing import Any

from chatapp.errors import Problem, invalid
from chatapp.models.conversation import TITLE_LENGTH
from chatapp.params import check_params
from streaming.events import dumps

MAX_PROMPT = 100_000
MAX_PANES = 8
MAX_MODEL_LENGTH = 200
MAX_STOP_KEYS = 256
_KEY = re.compile(r"[\x21-\x7e]{1,64}")


@dataclass(frozen=True, slots=True)
class PaneChoice:
    """What one pane of a new turn is to use. Whether the model exists is the catalogue's to say."""

    id: uuid.UUID
    model: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewTurn:
    prompt: str
    panes: tuple[PaneChoice, ...]
    key: str

    @property
    def fingerprint(self) -> str:
        """Give the same text for the same request, whatever the order of its members."""
        panes = [[str(pane.id), pane.model, sorted(pane.params.items())] for pane in self.panes]
        return hashlib.sha256(dumps([self.prompt, panes]).encode()).hexdigest()


def parse_object(body: bytes) -> dict[str, Any]:
    """
    Read a JSON object.

    Raises:
        Problem: `malformed_json`, or `invalid_field` when it is JSON but no object.
    """
    try:
        data = json.loads(body or b"{}")
    except (ValueError, RecursionError) as exc:
        raise Problem("malformed_json", "The body is not valid JSON.") from exc
    if not isinstance(data, dict):
        raise invalid("", "The body must be a JSON object.")
    return data


def parse_turn(data: dict[str, Any]) -> NewTurn:
    """
    Check the body of a new turn.

    Raises:
        Problem: the first thing that is wrong with it.
    """
    prompt = _text(data, "prompt")
    if not prompt.strip():
        raise Problem("prompt_empty", "The prompt is empty. Write something first.", field="prompt")
    if len(prompt) > MAX_PROMPT:
        detail = f"The prompt has {len(prompt):,} characters; at most {MAX_PROMPT:,} are allowed."
        raise Problem("prompt_too_long", detail, field="prompt")
    return NewTurn(prompt, _panes(data.get("panes")), parse_key(data))


def parse_title(data: dict[str, Any]) -> str:
    title = " ".join(_text(data, "title").split())
    if len(title) > TITLE_LENGTH:
        raise invalid("title", f"A title may have at most {TITLE_LENGTH} characters.")
    return title


def title_from(prompt: str) -> str:
    """Name a conversation by the beginning of its first prompt."""
    line = " ".join(prompt[:1000].split())
    return line if len(line) <= 80 else f"{line[:79].rstrip()}…"


def _panes(value: Any) -> tuple[PaneChoice, ...]:
    if not isinstance(value, list):
        raise invalid("panes", "panes must be a list.")
    if not 1 <= len(value) <= MAX_PANES:
        raise Problem("panes_count", f"A turn takes 1 to {MAX_PANES} panes, not {len(value)}.", field="panes")
    panes = tuple(_pane(item, f"panes[{place}]") for place, item in enumerate(value))
    if len({pane.id for pane in panes}) < len(panes):
        raise Problem("pane_repeated", "Each pane needs an id of its own.", field="panes")
    return panes


def _pane(value: Any, where: str) -> PaneChoice:
    if not isinstance(value, dict):
        raise invalid(where, f"{where} must be an object with id, model and params.")
    model = _text(value, "model", where)
    if len(model) > MAX_MODEL_LENGTH:
        raise Problem("unknown_model", "There is no such model.", field=f"{where}.model")
    params = value.get("params")
    if not isinstance(params, dict | None):
        raise invalid(f"{where}.params", f"{where}.params must be an object.")
    return PaneChoice(_uuid(value, where), model, _clean(check_params(params or {}, f"{where}.params")))


def _uuid(value: dict[str, Any], where: str) -> uuid.UUID:
    try:
        return uuid.UUID(_text(value, "id", where))
    except ValueError as exc:
        raise invalid(f"{where}.id", f"{where}.id must be a UUID.") from exc


def parse_key(data: dict[str, Any]) -> str:
    """Check the key that makes posting idempotent. Without one the request is one of a kind."""
    value = data.get("key")
    if value is None:
        return str(uuid.uuid4())
    if not isinstance(value, str) or not _KEY.fullmatch(value):
        raise invalid("key", "key must have 1 to 64 printable ASCII characters, such as a UUID.")
    return value


def parse_stop_keys(data: dict[str, Any]) -> list[str]:
    """Check the keys of answers to stop; whoever owns the answers needs none."""
    keys = data.get("stop_keys", [])
    if not isinstance(keys, list) or len(keys) > MAX_STOP_KEYS:
        raise invalid("stop_keys", f"stop_keys must be a list of at most {MAX_STOP_KEYS} keys.")
    if not all(isinstance(key, str) and _KEY.fullmatch(key) for key in keys):
        raise invalid("stop_keys", "A stop key is a text, as the documents of answers give it.")
    return keys


def _text(data: dict[str, Any], name: str, where: str = "") -> str:
    value = data.get(name)
    if not isinstance(value, str):
        path = f"{where}.{name}" if where else name
        raise invalid(path, f"{path} must be a text.")
    return _valid(value)


def _clean(params: dict[str, Any]) -> dict[str, Any]:
    """Make texts valid in parameters that were checked: only `stop` holds any."""
    return {name: [_valid(stop) for stop in value] if name == "stop" else value for name, value in params.items()}


def _valid(text: str) -> str:
    """Join surrogate halves, replace lone ones, and NUL too, which PostgreSQL cannot store."""
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
