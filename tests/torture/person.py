"""A guest with a browser: asks, stops, and repeats what did not get through, as the page does."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.torture.site import Site

# nginx holds a request to a web server that stands still for a minute; a person tries again before.
_ANSWER_S = 8.0
_GIVE_UP_S = 90.0
_AGAIN_S = 0.3


class NoAnswer(Exception):
    """The site did not answer a request for longer than any fault of the suite lasts."""


@dataclass(frozen=True, slots=True)
class Stop:
    """One request to cancel a generation, and what the site answered. `at` is epoch ms, when it answered."""

    gen: str
    asked_at: float
    at: float
    status: int
    state: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One generation as it was asked for."""

    gen: str
    number: int
    conversation: str
    model: str
    prompt: str


@dataclass
class Person:
    """One conversation of one guest. Made by `arrive`."""

    site: Site
    http: httpx.AsyncClient
    conversation: str = ""
    asked: list[Asked] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)

    @classmethod
    async def arrive(cls, site: Site) -> Person:
        # No certificates are needed, and reading them costs more than the rest of a client.
        http = httpx.AsyncClient(base_url=f"http://127.0.0.1:{site.port}", timeout=_ANSWER_S, verify=False)
        person = cls(site, http)
        await person._until_answered("GET", "/")
        answer = await person._until_answered("POST", "/api/conversations", {})
        person.conversation = answer.json()["id"]
        return person

    @property
    def cookie(self) -> str:
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.http.cookies.jar)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.site.port}"

    async def ask(self, prompt: str, models: Sequence[str]) -> list[Asked]:
        """Post a turn; the same key makes it one turn, however often it has to be posted."""
        panes = [{"id": str(uuid.uuid4()), "model": model, "params": {}} for model in models]
        body = {"prompt": prompt, "panes": panes, "key": str(uuid.uuid4())}
        answer = await self._until_answered("POST", f"/api/conversations/{self.conversation}/turns", body)
        generations = answer.json()["turn"]["generations"]
        first = len(self.asked) + 1
        new = [
            Asked(generation["gen"], first + place, self.conversation, generation["model"], prompt)
            for place, generation in enumerate(generations)
        ]
        self.asked += new
        return new

    async def stop(self, gen: str) -> Stop:
        """Ask a generation to stop, until the site has taken the request."""
        asked_at = time.time() * 1000
        answer = await self._until_answered("POST", f"/api/generations/{gen}/cancel", {})
        stop = Stop(gen, asked_at, time.time() * 1000, answer.status_code, answer.json()["state"])
        self.stops.append(stop)
        return stop

    async def sync(self) -> dict[str, Any]:
        """
        Fetch the sync document, once.

        Raises:
            httpx.HTTPError: it did not get through.
        """
        response = await self.http.get(f"/api/conversations/{self.conversation}/sync")
        response.raise_for_status()
        document: dict[str, Any] = response.json()
        return document

    async def leave(self) -> None:
        await self.http.aclose()

    async def _until_answered(self, method: str, path: str, body: Any = None) -> httpx.Response:
        give_up_at = time.monotonic() + _GIVE_UP_S
        last: object = None
        while time.monotonic() < give_up_at:
            try:
                response = await self.http.request(method, path, json=body, headers=self._headers())
            except httpx.HTTPError as exc:
                last = repr(exc)
            else:
                if response.is_success:
                    return response
                last = f"{response.status_code} {response.text[:300]}"
                if response.is_client_error:
                    break
            await asyncio.sleep(_AGAIN_S * random.uniform(0.5, 1.5))
        raise NoAnswer(f"{method} {path}: {last}")

    def _headers(self) -> dict[str, str]:
        token = self.http.cookies.get("csrftoken")
        return {"X-CSRFToken": token, "Origin": self.origin} if token else {}
