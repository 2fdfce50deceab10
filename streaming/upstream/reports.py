"""What a service says of an error, whatever shape it says it in: its names, its words, and the parameter. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple


class Report(NamedTuple):
    names: tuple[object, ...] = ()  # Its code, type, status, as the service writes them.
    words: str = ""
    parameter: str = ""  # What is wrong in the request: in our words where we have one for it, else the service's.


_NAMES: Final = ("code", "type", "status", "statusCode", "status_code", "error_code", "errorCode", "title", "__type")
_WORDS: Final = (
    "message",
    "msg",
    "detail",
    "error",
    "error_description",
    "errorMessage",
    "error_msg",
    "reason",
    "status_msg",
)
_CODES: Final = ("code", "status", "statusCode", "status_code", "error_code", "errorCode")
_FINE: Final = frozenset({0, *range(100, 400)})
_PARAMETER: Final = ("param", "parameter", "field", "argument")
# How services spell our parameters, without case and what separates words.
_OURS: Final = {
    "temperature": "temperature",
    "topp": "top_p",
    "topk": "top_k",
    "minp": "min_p",
    **dict.fromkeys(("repeatpenalty", "repetitionpenalty"), "repeat_penalty"),
    **dict.fromkeys(("maxtokens", "maxcompletiontokens", "maxoutputtokens", "maxnewtokens"), "max_tokens"),
    **dict.fromkeys(("maxtokenstosample", "numpredict", "npredict"), "max_tokens"),
    **dict.fromkeys(("seed", "randomseed"), "seed"),
    **dict.fromkeys(("stop", "stopsequences"), "stop"),
    "presencepenalty": "presence_penalty",
    "frequencypenalty": "frequency_penalty",
    **dict.fromkeys(("reasoningeffort", "reasoning", "thinking", "think"), "reasoning_effort"),
    **dict.fromkeys(("thinkinglevel", "thinkingbudget", "thinkingconfig", "budgettokens"), "reasoning_effort"),
}
# Sentences hold these words anyway: they name a parameter only where a mark sets them apart.
_COMMON: Final = frozenset({"seed", "stop", "reasoning", "thinking", "think"})
_MARKS: Final = "'\"`‘’“”"
_WORD: Final = re.compile(r"[A-Za-z][\w.]*\w", re.ASCII)
_QUOTED: Final = re.compile(
    r"(?i)\b(?:parameter|argument|field|property|option|key|name)s?(?: supplied| provided| given)?\W{0,3}"
    rf"[{_MARKS}]([\w.\[\]-]{{1,60}})[{_MARKS}]"
)
_NAME: Final = re.compile(r"[A-Za-z_][\w.\[\]-]{0,59}", re.ASCII)
# Where pydantic says that a value came from, before it says what it is called.
_PLACES: Final = frozenset({"body", "query", "__root__", "options", "params"})
_DEEPEST: Final = 6


def report_in(document: Any) -> Report | None:
    """Read what a JSON document says of an error; None where it says nothing that could be one."""
    holders = list(_holders(document, _DEEPEST))
    names = tuple(holder[name] for holder in holders for name in _NAMES if _is_name(holder.get(name)))
    words = next(filter(None, map(_words, holders)), "")
    if not names and not words:
        return None
    parameter = next((name for said in _stated(document, _DEEPEST) if (name := _ours(said))), "")
    return Report(names, words, parameter or named_in(words))


def says_error(event: Mapping[str, Any]) -> bool:
    """Say whether an object of a stream, of which nothing was read, tells that the service failed."""
    kinds = (event.get("object"), event.get("type"))
    if event.get("errors") or any(isinstance(kind, str) and kind.endswith("error") for kind in kinds):
        return True
    state = event.get("base_resp")  # MiniMax has its code and words in there, also where all is well.
    holder = state if isinstance(state, dict) else event
    codes = [_number(holder.get(name)) for name in _CODES]
    is_refused = event.get("success") is False or any(code not in _FINE for code in codes)
    said = [name for name in _WORDS if holder.get(name)]
    return bool(said) and (is_refused or event.keys() <= {"detail"})


def _number(code: object) -> int:
    return int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdecimal()) else 0


def report_of_body(body: bytes) -> Report | None:
    """Read the body of a response; None where it is not JSON that says an error."""
    try:
        return report_in(json.loads(body))
    except (ValueError, RecursionError):
        return None


def named_in(words: str) -> str:
    """Find the parameter that a sentence is about: the first that is one of ours, else one that it quotes as one."""
    for word in _WORD.finditer(words):
        plain = _plain(word[0].rpartition(".")[2])
        if plain in _OURS and (plain not in _COMMON or _is_set_apart(words, word)):
            return _OURS[plain]
    quoted = _QUOTED.search(words)
    return _ours(quoted[1]) if quoted else ""


def _holders(document: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    """Give the objects that tell of the error, the innermost first."""
    if isinstance(document, str):
        document = {"message": document}
    if isinstance(document, list):
        document = document[0] if document else None
    if isinstance(document, dict):
        inner = document.get("error") or document.get("errors") or document.get("message")
        inner = inner or document.get("base_resp")
        if depth and isinstance(inner, dict | list):
            yield from _holders(inner, depth - 1)
        yield document


def _is_name(value: object) -> bool:
    return bool(value) and (isinstance(value, str) or type(value) is int)


def _words(holder: Mapping[str, Any]) -> str:
    return next((words for name in _WORDS if (words := _flat(holder.get(name), _DEEPEST))), "")


def _flat(value: Any, depth: int) -> str:
    """Give what is said as one text. Lists hold one mistake each; pydantic says of each where it is."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list) and depth:
        return "\n".join(filter(None, (_flat(each, depth - 1) for each in value)))
    if isinstance(value, dict) and depth:
        said = next((said for name in _WORDS if (said := _flat(value.get(name), depth - 1))), "")
        place = ".".join(map(str, value["loc"])) if isinstance(value.get("loc"), list) else ""
        return f"{place}: {said}" if place and said else said
    return ""


def _stated(value: Any, depth: int) -> Iterator[str]:
    """Give what members for this purpose say of where the mistake is, such as `param` and `loc`."""
    if isinstance(value, dict):
        yield from (value[name] for name in _PARAMETER if isinstance(value.get(name), str))
        place = value.get("loc")
        if isinstance(place, list):
            yield from [part for part in place if isinstance(part, str) and part not in _PLACES][:1]
    if depth and isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _stated(each, depth - 1)


def _ours(name: str) -> str:
    """Give our word for a service's name, which may be a path; else the name, if it looks like one."""
    ours = next((_OURS[plain] for part in reversed(name.split(".")) if (plain := _plain(part)) in _OURS), "")
    return ours or (name if _NAME.fullmatch(name) else "")


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _is_set_apart(words: str, found: re.Match[str]) -> bool:
    around = words[max(found.start() - 1, 0) : found.start()] + words[found.end() : found.end() + 1]
    return "." in found[0] or "_" in found[0] or any(mark in around for mark in _MARKS)
