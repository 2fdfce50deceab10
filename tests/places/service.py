"""A model service behind TLS, signed by an authority of its own, and a proxy on the way to it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.streaming.upstream.authority import found
from tests.streaming.upstream.proxy import proxying
from tests.streaming.upstream.server import DONE, SSE, STOP, TEXT, Server, sends, serving

# A name that only the proxy knows.
FAR = "model.example"
TEXT_SAID = "A"


@dataclass(frozen=True)
class Service:
    address: str
    authority: Path
    proxy: Server


@contextmanager
def far_service(folder: Path) -> Iterator[Service]:
    """Serve in a thread of its own, because whoever asks waits for answers."""
    started: list[Service] = []
    ready, over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with _serving(folder) as service:
            started.append(service)
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(10), "the model service did not start"
    try:
        yield started[0]
    finally:
        over.set()
        thread.join(10)


@contextlib.asynccontextmanager
async def _serving(folder: Path) -> AsyncIterator[Service]:
    authority = found(folder, "localhost", FAR)
    authority.file.chmod(0o644)
    async with serving(sends(SSE, TEXT, STOP, DONE), tls=authority.tls) as server, proxying(server.port) as proxy:
        yield Service(server.url, authority.file, proxy)
