"""The browser's reducer and the server's, on logs that nobody thought of."""

from __future__ import annotations

import random
from typing import Any

import pytest
from playwright.async_api import Page

from streaming.events import VIEWS
from streaming.snapshot import snapshot_to_dict
from tests.streaming.test_vectors import completed, run

pytestmark = pytest.mark.asyncio(loop_scope="session")

Json = Any
LOGS = 500
PIECES = ["a", "🌍", "é", "e\u0301", "\n\n", "👩\u200d👧", "<b>", "你好", " ", "```"]


async def test_both_reducers_give_the_same_for_any_log(page: Page) -> None:
    chance = random.Random(1)
    logs = [_log(chance) for _ in range(LOGS)]
    await page.goto("/unit")
    theirs = await page.evaluate("(logs) => import('/tests/folding.js').then((f) => logs.map(f.outcome))", logs)
    for log, their in zip(logs, theirs, strict=True):
        assert (log, their) == (log, _outcome(log))


def _outcome(log: list[Json]) -> Json:
    snapshot, raised = run(completed(log))
    return {"snapshot": snapshot_to_dict(snapshot), "raised": raised, "tail": snapshot.text[snapshot.shown :]}


def _log(chance: random.Random) -> list[Json]:
    """Mostly what may happen, with duplicates, gaps, stale views and events out of place among it."""
    first: list[Json] = [{"type": "start", "model": "m", "pane": "p", "params": {}}] if chance.random() < 0.95 else []
    steps = first + [chance.choice(_STEPS)(chance) for _ in range(chance.randrange(25))]
    for step in steps:
        if step["type"] not in VIEWS and chance.random() < 0.06:
            step["seq"] = chance.randrange(1, 20)
    for at, step in enumerate(steps):
        if step["type"] == "block":
            # A view never shows text that did not come before it.
            snapshot, _ = run(completed(steps[:at]))
            step["length"] = min(step["length"], len(snapshot.text))
    return steps


def _block(chance: random.Random) -> Json:
    place = {"after_seq": chance.randrange(1, 12), "index": chance.randrange(4), "length": chance.randrange(30)}
    return {"type": "block", "html": chance.choice(["", "<p>x</p>"]), "sealed": chance.random() < 0.5, **place}


def _cancel(chance: random.Random) -> Json:
    return {"type": "cancel", "at": chance.randrange(9), "by": chance.choice(["user", "guest", "operator"])}


def _ending(chance: random.Random) -> Json:
    done = {"type": "done", "finish": "stop", "text_sha256": "", "text_length": 0, "timings": {"ended_at": 1}}
    code = chance.choice(["driver_lost", "overloaded"])
    said = {"code": code, "message": "It failed.", "retryable": True, "resumable": False}
    words = chance.choice([{}, {"said": "its own words"}])
    return chance.choice([done, {"type": "error", "text_length": 0, **said, **words}])


def _text(chance: random.Random) -> Json:
    return {"type": chance.choice(["text_delta", "reasoning_delta"]), "text": "".join(chance.choices(PIECES, k=3))}


def _tool(chance: random.Random) -> Json:
    call = {"call": chance.choice("ab")}
    kinds = [
        {"type": "tool_delta", "arguments": "{", **call},
        {"type": "tool_delta", "arguments": "1", "name": "f", **call},
        {"type": "tool_complete", "name": "g", "arguments": "{}", **call},
        {"type": "tool_result", "outcome": "succeeded", "result": "ok", **call},
    ]
    return chance.choice(kinds)


def _resumed(chance: random.Random) -> Json:
    tokens = {"kind": "token_prefix", "prefix_tokens": 1, "prefilled_tokens": 1}
    return {"type": "resumed", "attempt": chance.randrange(1, 5), **tokens}


_STEPS = [_text, _text, _text, _text, _block, _cancel, _block, _block, _tool, _resumed, _ending]
