"""
What full durability costs, beside the floor of the same run.

    python -m tests.bench.run --streams 100 --rate 50 --tokens 500 --transport sse

prints one JSON line for the floor (a bare proxy that keeps nothing) and one for the product: CPU for
each token of all processes together, over the whole run (each stream's question, start and end
included) and while all only stream; added latency; memory for each stream; the bytes that Redis receives
and appends to its file for each token, and those it holds for each byte of the answers, shortly before
their end and after it. Not part of the test suite: a time measured on a
busy machine proves nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any

from tests.bench.clients import Heard, Person, floor_client, summary
from tests.bench.processes import catalogue, cpu_seconds, family, free_port, resident_kb, running
from tests.bench.redis_bytes import RedisBytes


def main() -> None:
    arguments = parse()
    upstream = free_port()
    stub = [sys.executable, "-m", "tests.bench.stub_upstream", str(upstream)]
    with running(*stub, ready=f"http://127.0.0.1:{upstream}/stats"):
        floors = [measure_floor(arguments, upstream, server) for server in arguments.floor]
        for floor in floors:
            print(json.dumps(floor), flush=True)
        product = measure_product(arguments, upstream)
        for floor in floors:
            product[f"times_{floor['name']}"] = round(product["cpu_us_per_token"] / floor["cpu_us_per_token"], 2)
        print(json.dumps(product), flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--rate", type=int, default=50, help="tokens a second in each stream")
    parser.add_argument("--tokens", type=int, default=500, help="tokens in each answer")
    parser.add_argument(
        "--within", type=float, default=0.0, help="seconds over which the streams begin; 0: all at once"
    )
    parser.add_argument("--transport", choices=["sse", "ws"], default="sse")
    parser.add_argument("--floor", nargs="*", default=["daphne"], choices=["daphne", "uvicorn"], help="empty for none")
    arguments = parser.parse_args()
    missing = [server for server in arguments.floor if importlib.util.find_spec(server) is None]
    if missing:
        parser.error(f"not installed: {', '.join(missing)}. The packages of requirements-test.txt are needed.")
    return arguments


def measure_floor(arguments: argparse.Namespace, upstream: int, server: str) -> dict[str, Any]:
    port = free_port()
    environ = {"FLOOR_UPSTREAM": f"http://127.0.0.1:{upstream}/v1/chat/completions"}
    command = {
        "daphne": ["daphne", "-b", "127.0.0.1", "-p", str(port), "-v", "0", "tests.bench.floor:app"],
        "uvicorn": ["uvicorn", "--port", str(port), "--log-level", "error", "tests.bench.floor:app"],
    }[server]
    ready = f"tcp://127.0.0.1:{port}"
    with running(sys.executable, "-m", *command, environ=environ, ready=ready) as process:
        return asyncio.run(load_floor(arguments, port, family(process.pid), f"floor_{server}"))


async def load_floor(arguments: argparse.Namespace, port: int, pids: dict[int, str], name: str) -> dict[str, Any]:
    heard = [Heard() for _ in range(arguments.streams)]
    middle = asyncio.create_task(while_all_stream(heard, arguments.tokens, pids))
    before, start = cpu_seconds(pids), time.monotonic()
    clients = (floor_client(port, model_of(arguments), one) for one in heard)
    await asyncio.gather(*spread(clients, arguments.within / len(heard)))
    result = with_costs(summary(name, heard), before, cpu_seconds(pids), time.monotonic() - start)
    return result | {"streaming_us_per_token": await middle}


def measure_product(arguments: argparse.Namespace, upstream: int) -> dict[str, Any]:
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        environ = {
            "SIDESTREAM_VAR": folder,
            "MODELS_FILE": str(catalogue(Path(folder), upstream, model_of(arguments))),
            "SIDESTREAM_LLAMACPP_URL": "http://127.0.0.1:9",
            "SIDESTREAM_DISCOVER": "0",
            "SIDESTREAM_WORKER_STREAMS": str(arguments.streams + 20),
        }
        command = [sys.executable, "manage.py", "up", "--port", str(port)]
        with running(*command, environ=environ, ready=f"http://127.0.0.1:{port}/readyz") as process:
            return asyncio.run(load_product(arguments, port, family(process.pid), folder))


async def load_product(arguments: argparse.Namespace, port: int, pids: dict[int, str], folder: str) -> dict[str, Any]:
    people = [Person(port) for _ in range(arguments.streams)]
    for person in people:
        await person.arrive()
    heard = [Heard() for _ in people]
    follow = "follow_sse" if arguments.transport == "sse" else "follow_ws"
    idle, redis_bytes = resident_kb(pids), RedisBytes(folder, people[0].conversation)
    following = [asyncio.create_task(getattr(p, follow)(h)) for p, h in zip(people, heard, strict=True)]
    await asyncio.sleep(1)
    connected = resident_kb(pids)
    middle = asyncio.create_task(while_all_stream(heard, arguments.tokens, pids))
    before, start = cpu_seconds(pids), time.monotonic()
    await asyncio.gather(*spread((person.ask("stub") for person in people), arguments.within / len(people)))
    result = {"streaming_us_per_token": await middle, "redis_running": redis_bytes.held(heard)}
    await asyncio.gather(*following)
    redis_per_token = redis_bytes.for_each_token(sum(one.next_token for one in heard))
    whole = with_costs(summary(arguments.transport, heard), before, cpu_seconds(pids), time.monotonic() - start)
    result = whole | result
    result["kb_per_idle_follower"] = round((connected["web"] - idle["web"]) / len(people), 1)
    result["kb_per_stream"] = {k: round((v - idle[k]) / len(people), 1) for k, v in resident_kb(pids).items()}
    result["redis_per_token"] = redis_per_token
    result["redis_ended"] = redis_bytes.held(heard)
    for person in people:
        await person.leave()
    return result


def spread(beginning: Iterable[Coroutine[Any, Any, Any]], apart_s: float) -> list[Coroutine[Any, Any, Any]]:
    """Let each begin so many seconds after the one before."""

    async def later(one: Coroutine[Any, Any, Any], delay: float) -> None:
        await asyncio.sleep(delay)
        await one

    return [later(one, place * apart_s) for place, one in enumerate(beginning)]


async def while_all_stream(heard: list[Heard], tokens: int, pids: dict[int, str]) -> float:
    """Give the CPU for each token in µs from when all have a tenth of it until one has nine tenths."""
    while min(one.next_token for one in heard) < tokens / 10:
        await asyncio.sleep(0.01)
    before, first = cpu_seconds(pids), sum(one.next_token for one in heard)
    while max(one.next_token for one in heard) < tokens * 0.9:
        await asyncio.sleep(0.01)
    count = sum(one.next_token for one in heard) - first
    return round((sum(cpu_seconds(pids).values()) - sum(before.values())) * 1e6 / max(1, count), 1)


def with_costs(
    result: dict[str, Any], before: dict[str, float], after: dict[str, float], seconds: float
) -> dict[str, Any]:
    spent = {name: after[name] - before.get(name, 0.0) for name in after}
    tokens = max(1, result["tokens"])
    result["cpu_us_per_token"] = round(sum(spent.values()) * 1e6 / tokens, 1)
    result["cpu_us_by_process"] = {name: round(value * 1e6 / tokens, 1) for name, value in spent.items()}
    result["cores"] = round(sum(spent.values()) / seconds, 2)
    return result


def model_of(arguments: argparse.Namespace) -> str:
    return f"stub:{arguments.rate}:{arguments.tokens}"


if __name__ == "__main__":
    main()
