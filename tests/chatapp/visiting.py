"""Requests as a server makes them of the ASGI application: all middleware and threads included, piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from chatapp.asgi import application
from tests.chatapp.people import HOST, Person

Message = dict[str, Any]


@dataclass
class Visit:
    """One request under way. `said` holds what the application has sent and nobody has read yet."""

    said: asyncio.Queue[Message] = field(default_factory=asyncio.Queue)
    heard: asyncio.Queue[Message] = field(default_factory=asyncio.Queue)

    async def head(self) -> tuple[int, dict[str, str]]:
        """Read the status and the headers."""
        message = await self.said.get()
        assert message["type"] == "http.response.start"
        return message["status"], {name.decode().lower(): value.decode() for name, value in message["headers"]}

    async def part(self) -> bytes | None:
        """Read the next part of the body; None when there is no more."""
        message = await self.said.get()
        return message["body"] if message.get("more_body") else None


@asynccontextmanager
async def visiting(person: Person, address: str, **headers: str) -> AsyncIterator[Visit]:
    """Get an address; hang up at the end."""
    path, _, query = address.partition("?")
    named = {"host": HOST, "cookie": person.cookie, **headers}
    scope = {
        "type": "http", "http_version": "1.1", "method": "GET", "path": path, "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in named.items()],
    }  # fmt: skip
    visit = Visit()
    visit.heard.put_nowait({"type": "http.request"})
    serving = asyncio.create_task(application(scope, visit.heard.get, visit.said.put))
    try:
        yield visit
    finally:
        visit.heard.put_nowait({"type": "http.disconnect"})
        await serving


async def status_of(person: Person, address: str) -> int:
    """Get an address to the end of its response; give the status."""
    async with visiting(person, address) as visit:
        status, _ = await visit.head()
        # A body that is sent whole ends with its first message.
        while await visit.part() is not None:
            pass
        return status
