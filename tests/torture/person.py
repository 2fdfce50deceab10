"""A guest with a browser: asks, stops, and repeats what did not get through, as the page does."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from streaming.lifecycle import LIVE, State
from tests.torture.hurts import now_ms
from tests.torture.site import Site

# nginx holds a request to a web server that stands still for a minute; a person tries again before.
_ANSWER_S = 8.0
_GIVE_UP_S = 90.0
_AGAIN_S = 0.3


class NoAnswer(Exception):
    """The site did not answer a request for longer than any fault of the suite lasts, or refused it."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that did not get what it asked for. `status` is None when there was no answer at all."""

    what: str
    status: int | None
    said: str
    began: float  # by the monotonic clock, in ms
    ended: float


@dataclass(frozen=True, slots=True)
class Stop:
    """One request to cancel a generation, and what the site answered; times in epoch ms, and monotonic ones."""

    gen: str
    at: float  # when the site answered
    asked_mono: float
    at_mono: float
    status: int
    state: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One generation as it was asked for; `at_mono` is the moment before the request."""

    gen: str
    number: int
    conversation: str
    model: str
    prompt: str
    at_mono: float
    continues: str | None = None


@dataclass
class Person:
    """One conversation of one guest. Made by `arrive`."""

    site: Site
    http: httpx.AsyncClient
    conversation: str = ""
    asked: list[Asked] = field(default_factory=list)
    turns: int = 0
    stops: list[Stop] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    deleted_mono: float | None = None  # when the site said that the conversation is deleted
    deleting: bool = False

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
        began = now_ms()
        panes = [{"id": str(uuid.uuid4()), "model": model, "params": {}} for model in models]
        body = {"prompt": prompt, "panes": panes, "key": str(uuid.uuid4())}
        answer = await self._until_answered("POST", f"/api/conversations/{self.conversation}/turns", body)
        self.turns += 1
        new = [self._asked(data, prompt, began) for data in answer.json()["turn"]["generations"]]
        self.asked += new
        return new

    async def again(self, before: Asked, kind: str) -> Asked:
        """Ask for another answer in place of one that ended (`retry`), or for one that goes on (`continue`)."""
        began = now_ms()
        answer = await self._until_answered("POST", f"/api/generations/{before.gen}/{kind}", {"key": str(uuid.uuid4())})
        new = self._asked(answer.json()["generation"], before.prompt, began)
        self.asked.append(new)
        return new

    async def stop(self, gen: str) -> Stop:
        """Ask a generation to stop, until the site has taken the request."""
        asked = now_ms()
        answer = await self._until_answered("POST", f"/api/generations/{gen}/cancel", {})
        return self._stopped(gen, asked, answer.status_code, answer.json()["state"])

    async def stop_all(self) -> list[Stop]:
        """Ask everything that runs to stop."""
        asked = now_ms()
        answer = await self._until_answered("POST", f"/api/conversations/{self.conversation}/cancel", {})
        # The status is that of all together; a state says what it would be for one alone.
        told = [(one["id"], one["state"]) for one in answer.json()["generations"]]
        return [self._stopped(gen, asked, 202 if State(state) in LIVE else 200, state) for gen, state in told]

    async def delete(self) -> None:
        self.deleting = True
        path = f"/api/conversations/{self.conversation}"
        await self._until_answered("DELETE", path)
        self.deleted_mono = now_ms()

    async def sync(self) -> dict[str, Any]:
        """
        Fetch the sync document, once.

        Raises:
            httpx.HTTPError: it did not get through.
        """
        response = await self._once("GET", f"/api/conversations/{self.conversation}/sync")
        response.raise_for_status()
        document: dict[str, Any] = response.json()
        return document

    def refused(self, what: str, began: float, status: int | None, said: str) -> None:
        """Note that something did not get through; what is noted has to be explained in the end."""
        self.refusals.append(Refusal(what, status, said, began, now_ms()))

    async def leave(self) -> None:
        await self.http.aclose()

    async def _until_answered(self, method: str, path: str, body: Any = None) -> httpx.Response:
        give_up_at = time.monotonic() + _GIVE_UP_S
        last: object = None
        while time.monotonic() < give_up_at:
            try:
                response = await self._once(method, path, body)
            except httpx.HTTPError as exc:
                last = repr(exc)
            else:
                if response.is_success or self._is_gone(response):
                    return response
                last = f"{response.status_code} {response.text[:300]}"
                if response.is_client_error:
                    break
            await asyncio.sleep(_AGAIN_S * random.uniform(0.5, 1.5))
        raise NoAnswer(f"{method} {path}: {last}")

    async def _once(self, method: str, path: str, body: Any = None) -> httpx.Response:
        began = now_ms()
        try:
            response = await self.http.request(method, path, json=body, headers=self._headers())
        except httpx.HTTPError as exc:
            self.refused(f"{method} {path}", began, None, repr(exc))
            raise
        if not response.is_success and not self._is_gone(response):
            self.refused(f"{method} {path}", began, response.status_code, response.text[:200])
        return response

    def _is_gone(self, response: httpx.Response) -> bool:
        """Say whether it was deleted, as was asked; a repetition of that request finds nothing any more."""
        return self.deleting and response.status_code == httpx.codes.NOT_FOUND

    def _headers(self) -> dict[str, str]:
        token = self.http.cookies.get("csrftoken")
        return {"X-CSRFToken": token, "Origin": self.origin} if token else {}

    def _asked(self, data: Mapping[str, Any], prompt: str, began: float) -> Asked:
        place = data["number"], self.conversation, data["model"]
        return Asked(data["gen"], *place, prompt, began, data["continues"])

    def _stopped(self, gen: str, asked_mono: float, status: int, state: str) -> Stop:
        stop = Stop(gen, time.time() * 1000, asked_mono, now_ms(), status, state)
        self.stops.append(stop)
        return stop
