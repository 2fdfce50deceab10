"""
Streams that differ from what is documented, each a case of a kind that services were seen to send.

variations.jsonl has one a line: what is sent, either `sends` (payloads, see sent.py) or `wire` (the very characters),
and what it amounts to. What `expect` leaves out is empty. Tools are id, name, arguments, and whether the call was
completed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.streaming.upstream.recorded import Outcome, every_byte, play
from tests.streaming.upstream.sent import opened, sent

LINES = Path(__file__).with_name("variations.jsonl").read_text("utf-8").splitlines()
ROWS: list[dict[str, Any]] = [json.loads(line) for line in LINES]


def wire(row: dict[str, Any]) -> bytes:
    if "wire" in row:
        return str(row["wire"]).encode()
    return b"".join(sent(row["dialect"], payload) for payload in row["sends"])


def amounts_to(outcome: Outcome) -> dict[str, Any]:
    tools = [[tool["id"], tool["name"], tool["arguments"], tool["complete"]] for tool in outcome.tools]
    found = {
        "text": outcome.text, "reasoning": outcome.reasoning, "tools": tools, "finish": outcome.finish,
        "error": outcome.error, "usage": outcome.usage,
    }  # fmt: skip
    return {name: value for name, value in found.items() if value}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_variation_is_read_whole_and_in_one_byte_pieces(row: dict[str, Any]) -> None:
    data = wire(row)
    assert amounts_to(play(opened(row["dialect"]), [data])) == row["expect"]
    assert amounts_to(play(opened(row["dialect"]), every_byte(data))) == row["expect"]
