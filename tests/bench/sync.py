"""
How long a page waits for the sync of an answer that is being written.

    python -m tests.bench.sync --characters 25000 50000 100000

prints, for each length, the time of a sync request in ms, as a client on the same machine sees it, while the answer
goes on at a thousand tokens a second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.clients import Heard, Person
from tests.bench.processes import catalogue, free_port, running

RATE, TOKENS = 1_000, 60_000
SYNCS = 100


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--characters", type=int, nargs="+", default=[25_000, 50_000, 100_000])
    lengths = sorted(parser.parse_args().characters)
    upstream, port = free_port(), free_port()
    stub = [sys.executable, "-m", "tests.bench.stub_upstream", str(upstream)]
    with (
        running(*stub, ready=f"http://127.0.0.1:{upstream}/stats"),
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
    ):
        environ = {
            "SIDESTREAM_VAR": folder,
            "MODELS_FILE": str(catalogue(Path(folder), upstream, f"stub:{RATE}:{TOKENS}")),
            "SIDESTREAM_LLAMACPP_URL": "http://127.0.0.1:9",
            "SIDESTREAM_DISCOVER": "0",
        }
        command = [sys.executable, "manage.py", "up", "--port", str(port)]
        with running(*command, environ=environ, ready=f"http://127.0.0.1:{port}/readyz"):
            asyncio.run(measure(port, lengths))


async def measure(port: int, lengths: list[int]) -> None:
    person, heard = Person(port), Heard()
    await person.arrive()
    following = asyncio.create_task(person.follow_sse(heard))
    (gen,) = await person.ask("stub")
    for length in lengths:
        while heard.heard_bytes < length:
            await asyncio.sleep(0.01)
        print(json.dumps(await syncs(person)), flush=True)
    (await person.http.post(f"/api/generations/{gen}/cancel", headers=person.headers())).raise_for_status()
    await following
    await person.leave()


async def syncs(person: Person) -> dict[str, Any]:
    times, document = [], {}
    for _ in range(SYNCS):
        began = time.perf_counter()
        response = await person.http.get(f"/api/conversations/{person.conversation}/sync")
        times.append((time.perf_counter() - began) * 1000)
        document = response.raise_for_status().json()
    (generation,) = document["turns"][0]["generations"]
    if generation["state"] != "running":
        raise AssertionError("the answer ended before it was measured")
    times.sort()
    return {
        "characters": len(generation["text"]),
        "events": generation["seq"],
        "sync_ms": {p: round(times[min(SYNCS - 1, SYNCS * p // 100)], 1) for p in (50, 95)},
    }


if __name__ == "__main__":
    main()
