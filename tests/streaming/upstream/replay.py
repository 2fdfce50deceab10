"""
Recorded streams, served as their services would: `python -m tests.streaming.upstream.replay --port 9100`.

Each recording has an address of its own, whatever is asked for below it. Together they are a catalogue:

    python -m tests.streaming.upstream.replay --port 9100 --sample 40 --catalogue models.toml
    MODELS_FILE=models.toml python manage.py up

It is written before the server says that it is ready, together with what each recording should amount to
(models.toml.expected.json: by model id, text, reasoning, tools, usage, finish and error).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.streaming.upstream.recorded import DEVIATIONS, Case, expected, random_cuts, recordings
from tests.streaming.upstream.server import read_request

ADAPTERS = {
    "gemini_json_array": "gemini",
    "interactions": "gemini_interactions",
    "bedrock_converse": "bedrock",
}
CONTENT_TYPES = {
    "ollama": "application/x-ndjson",
    "gemini_json_array": "application/json",
    "bedrock_converse": "application/vnd.amazon.eventstream",
    "bedrock_invoke": "application/vnd.amazon.eventstream",
}
NOT_SPOKEN = {case for entry in DEVIATIONS["not_spoken"] for case in entry["cases"]}


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded stream as a model of the catalogue."""

    number: int
    case: Case

    @property
    def id(self) -> str:
        return f"r{self.number}"

    @property
    def adapter(self) -> str:
        return ADAPTERS.get(self.case.dialect, self.case.dialect)

    def table(self, address: str) -> str:
        rows = {
            "id": self.id, "label": self.case.id, "adapter": self.adapter, "model": "recorded",
            "address": f"{address}/{self.number}",
        }  # fmt: skip
        return "\n".join(["[[models]]", *(f"{name} = {json.dumps(value)}" for name, value in rows.items())])


def all_recordings() -> list[Recording]:
    spoken = [case for case in recordings() if case.id not in NOT_SPOKEN]
    return [Recording(number, case) for number, case in enumerate(spoken)]


def sample(size: int) -> list[Recording]:
    """Choose so many, from every dialect in turn, the same ones each time."""
    by_dialect: defaultdict[str, list[Recording]] = defaultdict(list)
    for recording in all_recordings():
        by_dialect[recording.case.dialect].append(recording)
    for of_one in by_dialect.values():
        random.Random(0).shuffle(of_one)
    chosen: list[Recording] = []
    while len(chosen) < size and any(by_dialect.values()):
        chosen += [of_one.pop() for of_one in by_dialect.values() if of_one]
    return chosen[:size]


def catalogue(chosen: Sequence[Recording], address: str) -> str:
    return "\n\n".join(recording.table(address) for recording in chosen) + "\n"


@asynccontextmanager
async def replaying(chosen: Sequence[Recording], port: int = 0) -> AsyncIterator[str]:
    """Serve recordings; give the address that the catalogue has to name."""
    by_number = {recording.number: recording for recording in chosen}

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _answer(reader, writer, by_number)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # The caller has heard enough.
        finally:
            writer.close()

    listener = await asyncio.start_server(connected, "127.0.0.1", port)
    try:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:
        listener.close()
        await listener.wait_closed()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, by_number: dict[int, Recording]) -> None:
    request = await read_request(reader)
    number = request.split(b" ")[1].split(b"/")[1]
    recording = by_number.get(int(number)) if number.isdigit() else None
    if recording is None:
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        return
    kind = CONTENT_TYPES.get(recording.case.dialect, "text/event-stream")
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
    for piece in random_cuts(recording.case.wire, seed=recording.number):
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _main(port: int, size: int, path: Path | None) -> None:
    chosen = sample(size)
    async with replaying(chosen, port) as address:
        if path:
            _write(path, chosen, address)
        print(f"{len(chosen)} recordings are ready at {address}", flush=True)
        await asyncio.Event().wait()


def _write(path: Path, chosen: Sequence[Recording], address: str) -> None:
    outcomes = {recording.id: asdict(expected(recording.case)) for recording in chosen}
    path.write_text(catalogue(chosen, address), "utf-8")
    path.with_name(f"{path.name}.expected.json").write_text(json.dumps(outcomes), "utf-8")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.streaming.upstream.replay")
    parser.add_argument("--port", type=int, default=9100)
    parser.add_argument("--sample", type=int, default=40, metavar="N", help="how many recordings (default: 40)")
    parser.add_argument("--catalogue", type=Path, metavar="FILE", help="write a models file for MODELS_FILE")
    args = parser.parse_args(argv)
    asyncio.run(_main(args.port, args.sample, args.catalogue))


if __name__ == "__main__":
    main()
