"""What a catalogue file may say, and where it says it wrong. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from difflib import get_close_matches
from typing import Any, Final, TypeAlias, cast

from chatapp.errors import Problem
from chatapp.modelconfig import ADAPTERS, ADDRESSES, LLAMACPP, SCRIPTED, ModelConfig, Price, is_address
from chatapp.params import check_params
from chatapp.tomlplaces import line_of
from chatapp.unseen import UNSEEN
from streaming.errors import UpstreamError
from streaming.upstream import llamacpp
from streaming.upstream.deadlines import Deadlines
from streaming.upstream.dialects import DIALECTS, openai_chat_spec
from streaming.upstream.limits import Limits
from streaming.upstream.openai_chat import ACCENTS
from streaming.upstream.ports import ChatRequest, Message

# A check gives what it wanted, as words that follow "must be", or None when it is satisfied.
Check: TypeAlias = Callable[[Any], str | None]

CAPABILITIES: Final = ("reasoning", "tools", "images", "json_schema", "token_ids")
_ID: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_VERSION: Final = re.compile(r"20\d\d-\d\d-\d\d(?:-preview)?")
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_SECRET_KEYS: Final = ("key_env", "key", "api_key", "token", "password", "secret")


def read_models(document: Mapping[str, Any], source: str) -> tuple[Sequence[ModelConfig], list[str]]:
    """Give the models, and every mistake as `line n: …`. With mistakes the models are not to be used."""
    strange = document.keys() - {"models"}
    notes = [_Note(None, name, "is not known; a catalogue holds [[models]] only") for name in strange]
    rows = document.get("models")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        notes.append(_Note(None, "models", "must be one or more tables that begin with [[models]]"))
        rows = []
    models = [_model(row, number, notes) for number, row in enumerate(rows)]
    ids = [row.get("id") for row in rows]
    notes += [
        _Note(number, "id", "is there twice; every model needs its own")
        for number, name in enumerate(ids)
        if name is not None and name in ids[:number]
    ]
    return models, [_in_words(note, rows, source) for note in notes]


@dataclass(frozen=True, slots=True)
class _Note:
    """A mistake: in which model, at which key (dotted), and what is wrong."""

    number: int | None
    key: str
    wrong: str


class _Table:
    """One table under inspection. What it is asked for is checked; at the end nothing unasked may be left."""

    def __init__(self, values: Mapping[str, Any], number: int, notes: list[_Note], prefix: str = "") -> None:
        self._values = values
        self._number = number
        self._notes = notes
        self._prefix = prefix
        self._known: list[str] = []

    def note(self, key: str, wrong: str) -> None:
        self._notes.append(_Note(self._number, self._prefix + key, wrong))

    def take(self, key: str, check: Check, default: Any = None) -> Any:
        self._known.append(key)
        if key not in self._values:
            return default
        wanted = check(self._values[key])
        if wanted is None:
            return self._values[key]
        # What stands where the name of a secret belongs may be the secret itself.
        got = "" if key in _SECRET_KEYS else f", not {self._values[key]!r:.80}"
        self.note(key, f"must be {wanted}{got}")
        return default

    def need(self, key: str, check: Check, default: Any) -> Any:
        if key not in self._values:
            self.note(key, f"is missing; it must be {check(None)}")
        return self.take(key, check, default)

    def inner(self, key: str) -> _Table | None:
        """Give the table within; None if there is none, or something else in its place."""
        values = self.take(key, _table)
        return None if values is None else _Table(values, self._number, self._notes, f"{self._prefix}{key}.")

    def numbers(self, names: Sequence[str], check: Check) -> dict[str, Any]:
        taken = {name: self.take(name, check) for name in names}
        self.end()
        return {name: value for name, value in taken.items() if value is not None}

    def end(self) -> None:
        for key in self._values.keys() - set(self._known):
            near = get_close_matches(key, self._known, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(self._known)}"
            self.note(key, f"is not known; {hint}")


def _model(row: Mapping[str, Any], number: int, notes: list[_Note]) -> ModelConfig:
    table = _Table(row, number, notes)
    adapter = table.need("adapter", _one_of(ADAPTERS), SCRIPTED)
    config = ModelConfig(
        id=table.need("id", _matches(_ID, "small letters, digits, dots, dashes and underscores, at most 100"), ""),
        label=table.need("label", _text, ""),
        adapter=adapter,
        model=table.need("model", _name, ""),
        address=table.take("address", _address),
        address_env=table.take("address_env", _variable),
        key_env=table.take("key_env", _variable),
        accent=table.take("accent", _one_of(ACCENTS), ""),
        api_version=table.take("api_version", _matches(_VERSION, "a version, such as 2024-10-21"), ""),
        background=table.take("background", _truth, default=False),
        system=table.take("system", _text, ""),
        params=table.take("params", _table, {}),
        context_tokens=table.take("context_tokens", _positive_whole),
        capabilities=_capabilities(table, adapter),
        max_running=table.take("max_running", _positive_whole),
        price=_price(table.inner("price")),
        deadlines=_deadlines(table.inner("deadlines")),
        limits=_limits(table.inner("limits")),
    )
    table.end()
    _check_address(config, table)
    _check_params(config, table)
    return config


def _capabilities(table: _Table, adapter: str) -> tuple[str, ...]:
    named = table.take("capabilities", _some_of(CAPABILITIES), [])
    own = ("token_ids",) if adapter == LLAMACPP else ()
    return tuple(dict.fromkeys((*own, *named)))


def _price(table: _Table | None) -> Price | None:
    if table is None:
        return None
    price = Price(
        input=table.need("input", _amount, 0.0),
        output=table.need("output", _amount, 0.0),
        currency=table.need("currency", _matches(_CURRENCY, "three capital letters, such as USD"), ""),
        as_of=table.need("as_of", _day, date.min),
        cached=table.take("cached", _amount),
        source=table.take("source", _text),
    )
    table.end()
    return price


def _deadlines(table: _Table | None) -> Deadlines:
    return Deadlines(**table.numbers([f.name for f in fields(Deadlines)], _positive)) if table else Deadlines()


def _limits(table: _Table | None) -> Limits:
    return Limits(**table.numbers([f.name for f in fields(Limits)], _positive_whole)) if table else Limits()


def _check_address(config: ModelConfig, table: _Table) -> None:
    if config.address and config.address_env:
        table.note("address_env", "and address exclude each other; keep one")
    if config.adapter == SCRIPTED:
        return
    if not (config.address or config.address_env or config.adapter in ADDRESSES):
        table.note("address", f"is missing; {config.adapter} needs address, or address_env")
    for key, adapter in (("accent", "openai_chat"), ("api_version", "azure"), ("background", "openai_responses")):
        if getattr(config, key) and config.adapter != adapter:
            table.note(key, f"belongs to the adapter {adapter} only")


def _check_params(config: ModelConfig, table: _Table) -> None:
    try:
        check_params(config.params, "params")
        _build(config)
    except Problem as problem:
        table.note(str(problem.members["field"]), f"is refused: {problem.detail}")
    except UpstreamError as exc:
        table.note("params", f"are refused by {config.adapter}: {exc.message}")


def _build(config: ModelConfig) -> None:
    """Build a call that is never made: the adapter itself says which parameters it does not have."""
    request = ChatRequest(config.model, (Message("user", "Hello"),), config.params)
    if config.adapter == LLAMACPP:
        llamacpp.build_body(request, ())
    elif config.adapter == "openai_chat":
        openai_chat_spec(config.accent_at(config.address_in({}))).build_body(request)
    elif config.adapter != SCRIPTED:
        DIALECTS[config.adapter].build_body(request)


def _in_words(note: _Note, rows: Sequence[Mapping[str, Any]], source: str) -> str:
    line = line_of(source, note.number, note.key)
    model = "" if note.number is None else f" in model {rows[note.number].get('id', note.number + 1)!r}"
    return f"line {line}: {note.key}{model} {note.wrong}."


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) and value.strip() else "a text"


def _name(value: Any) -> str | None:
    is_seen = not _text(value) and value.isprintable() and not UNSEEN.search(value)
    return None if is_seen else "a text without invisible characters"


def _table(value: Any) -> str | None:
    return None if isinstance(value, dict) else "a table"


def _truth(value: Any) -> str | None:
    return None if isinstance(value, bool) else "true or false"


def _address(value: Any) -> str | None:
    fits = isinstance(value, str) and is_address(value)
    return None if fits else "an http or https address without user, query or fragment"


def _variable(value: Any) -> str | None:
    wanted = "the NAME of an environment variable, in capitals, never the value itself"
    return _matches(_VARIABLE, wanted)(value)


def _day(value: Any) -> str | None:
    return None if type(value) is date else "the day on which the price was read, such as 2026-01-31, without quotes"


def _amount(value: Any) -> str | None:
    return None if _is_number(value) and value >= 0 else "a number from 0, for a million tokens"


def _positive(value: Any) -> str | None:
    return None if _is_number(value) and value > 0 else "a number above 0"


def _positive_whole(value: Any) -> str | None:
    return None if type(value) is int and value > 0 else "a whole number above 0"


def _is_number(value: Any) -> bool:
    # Infinities and NaN, which TOML has, fit no comparison that follows from here.
    return type(value) in (int, float) and abs(cast("float", value)) < float("inf")


def _matches(pattern: re.Pattern[str], wanted: str) -> Check:
    return lambda value: None if isinstance(value, str) and pattern.fullmatch(value) else wanted


def _one_of(allowed: Sequence[str] | Mapping[str, Any]) -> Check:
    wanted = f"one of {', '.join(name for name in allowed if name)}"
    return lambda value: None if isinstance(value, str) and value in allowed else wanted


def _some_of(allowed: Sequence[str]) -> Check:
    wanted = f"a list of some of {', '.join(allowed)}"
    return lambda value: None if isinstance(value, list) and all(item in allowed for item in value) else wanted
