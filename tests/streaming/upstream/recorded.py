"""The recorded streams and quirk vectors of the shared folder, and what our chunks for one response amount to.

The folder is found beside the repository, or by SIDESTREAM_SHARED; nothing of it is copied into the repository.
"""

from __future__ import annotations

import base64
import json
import os
import random
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from streaming.errors import UpstreamError
from streaming.upstream.http import Dialect
from streaming.upstream.ports import (
    Chunk,
    FinishChunk,
    ReasoningChunk,
    TextChunk,
    ToolChunk,
    ToolCompleteChunk,
    UsageChunk,
)
from tests.streaming.upstream import eventstream

_ROOT = Path(__file__).parents[3]
SHARED = Path(os.environ.get("SIDESTREAM_SHARED") or _ROOT.parent / "shared") / "upstreams"
MISSING = f"no recorded streams: {SHARED.name} is not in the folder beside the repository, nor in SIDESTREAM_SHARED"
DEVIATIONS = tomllib.loads((Path(__file__).parent / "deviations.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Case:
    """One response: its bytes as a service would send them, and what they should amount to."""

    id: str
    dialect: str
    wire: bytes
    expect: dict[str, Any]
    suggested: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Outcome:
    """What chunks amount to. Equal for every cut of the same bytes."""

    text: str = ""
    reasoning: str = ""
    tools: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, int] | None = None
    finish: str | None = None
    error: str | None = None
    detail: str = ""
    tokens: list[int] = field(default_factory=list)

    def add(self, chunk: Chunk) -> None:
        assert self.finish is None, "nothing follows the finish"
        match chunk:
            case TextChunk(text=text, tokens=tokens):
                assert text
                self.text += text
                self.tokens += tokens
            case ReasoningChunk(text=text):
                assert text
                self.reasoning += text
            case ToolChunk():
                self._tool(chunk)
            case ToolCompleteChunk(call=call, name=name, arguments=arguments):
                tool = next(t for t in self.tools if t["id"] == call)
                assert tool["name"] == name
                assert arguments in (tool["arguments"], "{}")
                tool.update(arguments=arguments, complete=True)
            case UsageChunk():
                named = {
                    "input": chunk.input,
                    "output": chunk.output,
                    "cached": chunk.cached,
                    "reasoning": chunk.reasoning,
                }
                self.usage = {name: count for name, count in named.items() if count is not None}
            case FinishChunk(finish=finish):
                self.finish = finish

    def _tool(self, chunk: ToolChunk) -> None:
        tool = next((t for t in self.tools if t["id"] == chunk.call), None)
        if tool is None:
            assert chunk.name, "the first piece names the tool"
            self.tools.append({"id": chunk.call, "name": chunk.name, "arguments": chunk.arguments, "complete": False})
        else:
            assert chunk.name is None, "the name comes once"
            assert not tool["complete"], "nothing follows a complete call"
            tool["arguments"] += chunk.arguments


def play(dialect: Dialect, pieces: Iterable[bytes]) -> Outcome:
    """Do as HttpCall does, without HTTP."""
    outcome = Outcome()
    try:
        for piece in pieces:
            for chunk in dialect.feed(piece):
                outcome.add(chunk)
            if dialect.done:
                break
        for chunk in dialect.finish():
            outcome.add(chunk)
    except UpstreamError as error:
        outcome.error, outcome.detail = error.code, error.detail
    outcome.text.encode()  # Valid Unicode, or this raises.
    outcome.reasoning.encode()
    return outcome


def expected(case: Case) -> Outcome:
    """Say what a case should amount to, by the data and by the rules of deviations.toml."""
    expect = case.expect
    outcome = Outcome()
    if "parse_error" in expect:
        outcome.error = "protocol: malformed chunk"
        return outcome
    outcome.text = _first_choice(expect["text"]) + (expect["refusal"] or "")
    outcome.reasoning = _first_choice(expect["reasoning"])
    outcome.tools = [_expected_tool(tool, expect) for tool in expect["tool_calls"] if not tool.get("choice")]
    outcome.usage = _expected_usage(case)
    outcome.finish = _first_choice((case.suggested or expect)["finish"])
    outcome.error = _expected_error(case)
    for deviation in DEVIATIONS["deviation"]:
        if case.id in deviation["cases"]:
            setattr(outcome, deviation["field"], deviation["ours"])
    return outcome


def differences(got: Outcome, want: Outcome) -> list[str]:
    """Name what differs. Argument objects are compared as JSON; an error by its code or by the words it was given."""
    found = [
        f"{name}: got {getattr(got, name)!r}, expected {getattr(want, name)!r}"
        for name in ("text", "reasoning", "usage", "finish")
        if getattr(got, name) != getattr(want, name)
    ]
    if [_comparable(tool) for tool in got.tools] != [_comparable(tool) for tool in _with_ids(want.tools, got.tools)]:
        found.append(f"tools: got {got.tools}, expected {want.tools}")
    if not _same_error(got, want.error):
        found.append(f"error: got {got.error} ({got.detail}), expected {want.error}")
    return found


@cache
def recordings(*dialects: str) -> list[Case]:
    """All recorded streams, or those of some dialects."""
    if not SHARED.is_dir():
        return []
    rows = (json.loads(line) for line in (SHARED / "expected.jsonl").read_text(encoding="utf-8").split("\n") if line)
    return [
        Case(
            row["file"], row["dialect"].removesuffix("_lines"),
            framed(row["dialect"], (SHARED / "recorded" / row["file"]).read_bytes()), row["expect"], row["suggested"],
        )
        for row in rows
        if not dialects or row["dialect"].removesuffix("_lines") in dialects
    ]  # fmt: skip


@cache
def quirks(*dialects: str) -> list[Case]:
    """All quirk vectors, or those of some dialects."""
    if not SHARED.is_dir():
        return []
    rows = (json.loads(line) for line in (SHARED / "quirks.jsonl").read_text(encoding="utf-8").split("\n") if line)
    return [
        Case(
            row["id"], row["dialect"].removesuffix("_lines"),
            framed(row["dialect"], base64.b64decode(row["input_b64"])), row["expect"],
        )
        for row in rows
        if not dialects or row["dialect"].removesuffix("_lines") in dialects
    ]  # fmt: skip


def framed(dialect: str, data: bytes) -> bytes:
    """Some recordings kept the payloads only, one a line. Give them back the frame their service sends."""
    if not dialect.endswith("_lines"):
        return data
    lines = [line for line in data.split(b"\n") if line.strip()]
    if dialect == "bedrock_converse_lines":
        return b"".join(eventstream.event(*next(iter(json.loads(line).items()))) for line in lines)
    end = b"data: [DONE]\n\n" if dialect in ("openai_chat_lines", "interactions_lines") else b""
    return b"".join(b"data: " + line + b"\n\n" for line in lines) + end


def every_byte(data: bytes) -> Iterator[bytes]:
    return (data[i : i + 1] for i in range(len(data)))


def random_cuts(data: bytes, seed: int) -> Iterator[bytes]:
    """Cut into pieces of 1 to a few hundred bytes; the seed makes it the same every time."""
    dice = random.Random(seed)
    at = 0
    while at < len(data):
        size = dice.choice((1, 2, 3, 5, 17, 80, 400))
        yield data[at : at + size]
        at += size


def outcomes_differ(make: Callable[[], Dialect], wire: bytes, cuts: Iterable[Iterable[bytes]]) -> list[str]:
    """Play the same bytes in several cuts, and name what differs from playing them whole."""
    whole = play(make(), [wire])
    return [difference for pieces in cuts for difference in differences(play(make(), pieces), whole)]


def _first_choice(value: Any) -> Any:
    # Services may send several choices; we ask for one.
    return value.get("0") if isinstance(value, dict) else value


def _expected_tool(tool: dict[str, Any], expect: dict[str, Any]) -> dict[str, Any]:
    whole = tool.get("complete", tool.get("arguments_valid_json_object"))
    complete = bool(whole) and not expect.get("error")
    arguments = tool["arguments"]
    return {
        "id": tool["id"],
        "name": tool["name"],
        "arguments": arguments or ("{}" if complete else ""),
        "complete": complete,
    }


def _expected_usage(case: Case) -> dict[str, int] | None:
    if "usage" in case.expect:  # A quirk vector: already in our words, but for one of them.
        usage = case.expect["usage"]
        return usage and {{"cache_read": "cached"}.get(name, name): count for name, count in usage.items()}
    raw = case.expect["usage_raw"]
    return {name: count for name, count in USAGE[case.dialect](raw).items() if count is not None} if raw else None


def _dig(raw: Any, path: str) -> Any:
    for name in path.split("."):
        raw = raw.get(name) if isinstance(raw, dict) else None
    return raw


def _plus(*counts: int | None) -> int | None:
    return sum(n or 0 for n in counts) if any(n is not None for n in counts) else None


def _openai(raw: dict[str, Any]) -> dict[str, int | None]:
    read, written = (
        raw.get("prompt_tokens", raw.get("input_tokens")),
        raw.get("completion_tokens", raw.get("output_tokens")),
    )
    thought = _dig(raw, "completion_tokens_details.reasoning_tokens")
    if thought is None:
        thought = _dig(raw, "output_tokens_details.reasoning_tokens")
    paths = (
        "prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens", "prompt_cache_hit_tokens",
        "cached_tokens",
    )  # fmt: skip
    cached = next((found for path in paths if (found := _dig(raw, path)) is not None), None)
    outside = thought and raw.get("total_tokens") == read + written + thought
    return {"input": read, "output": written + thought if outside else written, "cached": cached, "reasoning": thought}


def _anthropic(raw: dict[str, Any]) -> dict[str, int | None]:
    cached = raw.get("cache_read_input_tokens")
    return {
        "input": _plus(raw.get("input_tokens"), cached, raw.get("cache_creation_input_tokens")),
        "output": raw.get("output_tokens"),
        "cached": cached,
        "reasoning": _dig(raw, "output_tokens_details.thinking_tokens"),
    }


def _gemini(raw: dict[str, Any]) -> dict[str, int | None]:
    thought = raw.get("thoughtsTokenCount")
    return {
        "input": _plus(raw.get("promptTokenCount"), raw.get("toolUsePromptTokenCount")),
        "output": _plus(raw.get("candidatesTokenCount"), thought),
        "cached": raw.get("cachedContentTokenCount"),
        "reasoning": thought,
    }


def _converse(raw: dict[str, Any]) -> dict[str, int | None]:
    cached = raw.get("cacheReadInputTokens", raw.get("cacheReadInputTokenCount"))
    written = raw.get("cacheWriteInputTokens", raw.get("cacheWriteInputTokenCount"))
    return {"input": _plus(raw["inputTokens"], cached, written), "output": raw["outputTokens"], "cached": cached}


def _titan(raw: dict[str, Any]) -> dict[str, int | None]:
    return {"input": raw["inputTokenCount"], "output": raw["outputTokenCount"]}


# How each dialect's raw usage reads in our words. Written apart from the code under test.
USAGE: dict[str, Callable[[dict[str, Any]], dict[str, int | None]]] = {
    "openai_chat": _openai,
    "openai_responses": _openai,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "gemini_json_array": _gemini,
    "interactions": lambda raw: {
        "input": _plus(raw.get("total_input_tokens"), raw.get("total_tool_use_tokens")),
        "output": _plus(raw.get("total_output_tokens"), raw.get("total_thought_tokens")),
        "cached": raw.get("total_cached_tokens"),
        "reasoning": raw.get("total_thought_tokens"),
    },
    "ollama": lambda raw: {"input": raw.get("prompt_eval_count"), "output": raw.get("eval_count")},
    "cohere": lambda raw: {
        "input": _dig(raw, "tokens.input_tokens"),
        "output": _dig(raw, "tokens.output_tokens"),
        "cached": raw.get("cached_tokens"),
    },
    "bedrock_converse": _converse,
    "bedrock_invoke": lambda raw: (
        _titan(raw) if "inputTokenCount" in raw else _anthropic(raw) if "input_tokens" in raw else _converse(raw)
    ),
}


def _expected_error(case: Case) -> str | None:
    if case.suggested:
        return "any" if case.suggested["terminal"] == "error" else None
    error = case.expect["error"]
    return error if error is None else str(error)


def _same_error(got: Outcome, want: str | None) -> bool:
    if want is None or want == "any":
        return (got.error is None) == (want is None)
    kind, _, word = want.partition(": ")
    if kind == "upstream_error":
        return got.error is not None and word.lower() in got.detail.lower()
    codes = {"protocol: malformed chunk": "malformed_stream", "protocol: spliced message": "spliced_stream"}
    return got.error == codes.get(want, kind)


def _with_ids(want: list[dict[str, Any]], got: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Where the service gave no id, any id of ours is right."""
    ids = [tool["id"] for tool in got] + [None] * len(want)
    return [
        {**tool, "id": ids[i] if tool["id"] in (None, "", "<synthetic>") else tool["id"]} for i, tool in enumerate(want)
    ]


def _comparable(tool: dict[str, Any]) -> tuple[Any, ...]:
    arguments = json.loads(tool["arguments"]) if tool["complete"] else tool["arguments"]
    return tool["id"], tool["name"], arguments, tool["complete"]
