"""
Script files: TOML in, scripts out.

A script is a list of steps, played in order; each `[[step]]` does one thing:

    text = "…"  or  reasoning = "…"     said in pieces of about a token; `times = 50` says it 50 times;
                                        with `echo = true`, {prompt} in it stands for the last prompt and
                                        {call} for the number that the upstream gave this call, from 1 on
    pause_s = 1.5                       nothing for so long; inf is silence for ever
    rate = 5                            pieces a second from here on
    tool = {call, name, arguments}      a tool call, in pieces and then whole
    usage = {input, output, cached, reasoning}
    finish = "stop"                     the end; one of the protocol's finishes
    error = {message, code}             the upstream reports an error inside the stream
    cut = "end"  or  "reset"            the stream ends without a finish: in an orderly way, or broken

At the top: `title`, `rate` (default 30), `open_after_s` (the head of the response comes so late),
`refuse = {status, retry_after_s}` (that response, and no stream). A script that ends in no finish, error,
cut or silence for ever finishes with "stop".
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, TypeAlias, TypeVar, get_args

from streaming.errors import StreamingError
from streaming.events import FINISHES
from streaming.upstream.ports import FinishChunk, ToolCompleteChunk, UsageChunk
from streaming.upstream.script import RATE, Cut, CutKind, Pause, Rate, Refusal, Report, Say, Script, Step, ends

_T = TypeVar("_T")
Table: TypeAlias = Mapping[str, Any]


class ScriptError(StreamingError):
    """A script file holds mistakes; the message names them all."""


class _Mistake(Exception):
    """One mistake; collected, so that all are reported together."""


def parse_script(name: str, source: str) -> Script:
    """
    Read a script.

    Raises:
        ScriptError: it has mistakes.
    """
    mistakes: list[str] = []
    script = _noted(mistakes, "file", lambda: _parse(name, source, mistakes))
    if script is None or mistakes:
        raise ScriptError(f"script {name}: {'; '.join(mistakes)}")
    return script


def _parse(name: str, source: str, mistakes: list[str]) -> Script:
    try:
        table = tomllib.loads(source)
    except tomllib.TOMLDecodeError as exc:
        raise _Mistake(str(exc)) from exc
    rows = table.pop("step", [])
    _need(isinstance(rows, list) and all(isinstance(row, dict) for row in rows), "write each step as a [[step]] table")
    steps = [_noted(mistakes, f"step {n}", partial(_step, row)) for n, row in enumerate(rows, start=1)]
    return _script(name, table, tuple(step for step in steps if step is not None))


def _noted(mistakes: list[str], where: str, build: Callable[[], _T]) -> _T | None:
    try:
        return build()
    except _Mistake as exc:
        mistakes.append(f"{where}: {exc}")
        return None


def _script(name: str, table: Table, steps: tuple[Step, ...]) -> Script:
    _only(table, {"title", "rate", "open_after_s", "refuse"})
    _need(bool(steps) or "refuse" in table, "needs a [[step]], or refuse")
    for step in steps[:-1]:
        _need(not ends(step), f"{type(step).__name__} ends the answer, so it must be the last step")
    refusal = (
        Refusal(**_fields(table["refuse"], {"status": int, "retry_after_s": float})) if "refuse" in table else None
    )
    title, rate, late = table.get("title", name), table.get("rate", RATE), table.get("open_after_s", 0.0)
    return Script(name, _text(title), steps, _number(rate, above=0), _number(late), refusal)


def _step(row: Table) -> Step:
    kinds = _KINDS.keys() & row.keys()
    _need(len(kinds) == 1, f"does one of {', '.join(sorted(_KINDS))}; got {', '.join(sorted(row)) or 'nothing'}")
    kind = kinds.pop()
    _only(row, {kind, "times", "echo"} if kind in ("text", "reasoning") else {kind})
    return _KINDS[kind](row)


def _say(row: Table) -> Say:
    times, echo = row.get("times", 1), row.get("echo", False)
    _need(type(times) is int and times > 0, f"times is a whole number from 1, got {times!r}")
    _need(type(echo) is bool, f"echo is true or false, got {echo!r}")
    return Say(_text(row.get("text", row.get("reasoning"))), "reasoning" in row, times, echo)


def _tool(row: Table) -> ToolCompleteChunk:
    fields = _fields(row["tool"], {"call": str, "name": str, "arguments": str})
    _need(fields.keys() == {"call", "name", "arguments"}, "tool needs call, name and arguments")
    try:
        arguments = json.loads(fields["arguments"])
    except ValueError:
        arguments = None
    _need(isinstance(arguments, dict), "arguments are a JSON object, written as text")
    return ToolCompleteChunk(**fields)


def _usage(row: Table) -> UsageChunk:
    return UsageChunk(**_fields(row["usage"], dict.fromkeys(("input", "output", "cached", "reasoning"), int)))


def _report(row: Table) -> Report:
    return Report(**{"message": "scripted", **_fields(row["error"], {"message": str, "code": str})})


_KINDS: dict[str, Callable[[Table], Step]] = {
    "text": _say,
    "reasoning": _say,
    "pause_s": lambda row: Pause(_number(row["pause_s"])),
    "rate": lambda row: Rate(_number(row["rate"], above=0)),
    "tool": _tool,
    "usage": _usage,
    "finish": lambda row: FinishChunk(_one_of(row["finish"], FINISHES), row["finish"]),
    "error": _report,
    "cut": lambda row: Cut(_one_of(row["cut"], get_args(CutKind))),
}


def _fields(table: object, kinds: Mapping[str, type]) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise _Mistake(f"expected a table of {', '.join(kinds)}, got {table!r}")
    _only(table, kinds.keys())
    for name, value in table.items():
        fits = isinstance(value, int | float) if kinds[name] is float else type(value) is kinds[name]
        _need(fits, f"{name} is no {kinds[name].__name__}: {value!r}")
    return table


def _only(table: Table, names: AbstractSet[str]) -> None:
    unknown = sorted(table.keys() - names)
    _need(not unknown, f"unknown {', '.join(unknown)}; known are {', '.join(sorted(names))}")


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise _Mistake(f"expected text, got {value!r}")
    return value


def _one_of(value: object, allowed: tuple[str, ...]) -> Any:
    _need(value in allowed, f"expected one of {', '.join(allowed)}, got {value!r}")
    return value


def _number(value: object, *, above: float | None = None) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Mistake(f"expected a number, got {value!r}")
    _need(value >= 0 if above is None else value > above, f"{value} is too small")
    return float(value)


def _need(fulfilled: bool, otherwise: str) -> None:
    if not fulfilled:
        raise _Mistake(otherwise)
