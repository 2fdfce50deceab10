"""A person with a browser, as little of it as it takes to ask."""

from __future__ import annotations

import re
import time
import uuid
from typing import Any

import httpx

PROMPT = "Are you there?"
_TOKEN = re.compile(r'name="csrf-token" content="([^"]+)"')
_PATIENCE_S = 30.0
_LOOK_AGAIN_S = 0.05


def ask(address: str, model: str) -> str:
    """Ask as a new guest, wait for the end of the answer, and give its text; it must be whole."""
    with httpx.Client(base_url=address, trust_env=False, timeout=_PATIENCE_S) as http:
        token = _TOKEN.findall(http.get("/").raise_for_status().text)[0]
        headers = {"X-CSRFToken": token, "Origin": address, "Referer": f"{address}/"}
        conversation = http.post("/api/conversations", json={}, headers=headers).raise_for_status().json()["id"]
        turn = {"prompt": PROMPT, "panes": [{"id": str(uuid.uuid4()), "model": model}], "key": str(uuid.uuid4())}
        path = f"/api/conversations/{conversation}"
        http.post(f"{path}/turns", json=turn, headers=headers).raise_for_status()
        return _whole(http, f"{path}/sync")


def _whole(http: httpx.Client, path: str) -> str:
    give_up_at = time.monotonic() + _PATIENCE_S
    while time.monotonic() < give_up_at:
        answer = _answer_in(http.get(path).raise_for_status().json())
        if answer["state"] not in ("queued", "running"):
            assert answer["state"] == "completed", f"the answer ended as {answer['state']}: {answer.get('error')}"
            return str(answer["text"])
        time.sleep(_LOOK_AGAIN_S)
    raise AssertionError(f"the answer did not end within {_PATIENCE_S:.0f} s")


def _answer_in(document: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = document["turns"][-1]["generations"][-1]
    return answer
