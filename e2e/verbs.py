"""What people do and see in the browser, and what they may ask of the API with the same cookie."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import APIRequestContext, Locator, Page, expect

WAIT_S = 20
# Answers of the newest turn as a person reads them; the bar over a code block is no part of an answer.
_SHOWN = """() => [...document.querySelectorAll("chat-turn:last-of-type answer-body")].map((body) => {
  const copy = body.cloneNode(true);
  copy.querySelectorAll(".code-bar").forEach((bar) => bar.remove());
  return copy.textContent;
})"""
_TOKEN = re.compile('name="csrf-token" content="([^"]+)"')

Json = Any


def squeezed(text: str) -> str:
    """Leave out spaces and line ends: Markdown and HTML treat them differently."""
    return "".join(text.split())


async def until(holds: Callable[[], Awaitable[object]], *, within_s: float = WAIT_S) -> None:
    """Ask again and again until it holds. Playwright's own waiting for a function needs eval: the policy forbids it."""
    give_up_at = time.monotonic() + within_s
    while not await holds():
        assert time.monotonic() < give_up_at, f"not within {within_s} s"
        await asyncio.sleep(0.01)


@dataclass(slots=True)
class Person:
    """Whoever owns a browser's cookie. What they began is deleted when their test is over."""

    request: APIRequestContext
    conversations: set[str] = field(default_factory=set)
    _token: str = ""

    async def begin(self) -> str:
        """Make a conversation and give its id."""
        made = await self.post("/api/conversations")
        self.conversations.add(made["id"])
        return str(made["id"])

    async def ask(self, prompt: str, *models: str) -> str:
        """Ask in a new conversation, without the page; give the conversation's id."""
        conversation = await self.begin()
        panes = [{"id": str(uuid.uuid4()), "model": model, "params": {}} for model in models]
        await self.post(f"/api/conversations/{conversation}/turns", {"prompt": prompt, "panes": panes})
        return conversation

    async def answers(self, conversation: str) -> list[Json]:
        """Give the snapshots of the newest turn, as the server has them at this moment."""
        response = await self.request.get(f"/api/conversations/{conversation}/sync")
        assert response.ok, await response.text()
        return list((await response.json())["turns"][-1]["generations"])

    async def texts(self, conversation: str) -> list[str]:
        return [answer["text"] for answer in await self.answers(conversation)]

    async def post(self, path: str, body: Json = None) -> Json:
        self._token = self._token or await self._csrf_token()
        response = await self.request.post(path, data=body or {}, headers={"X-CSRFToken": self._token})
        assert response.ok, await response.text()
        return await response.json()

    async def leave(self) -> None:
        """Delete what was begun, and so stop what still runs."""
        self._token = self._token or await self._csrf_token()
        for conversation in self.conversations:
            headers = {"X-CSRFToken": self._token}
            await self.request.delete(f"/api/conversations/{conversation}", headers=headers)
        self.conversations.clear()

    async def _csrf_token(self) -> str:
        found = _TOKEN.search(await (await self.request.get("/")).text())
        assert found
        return found[1]


class Chat:
    """One tab."""

    def __init__(self, page: Page, person: Person) -> None:
        self.page = page
        self.person = person

    @property
    def conversation(self) -> str:
        """The id of the conversation that the tab shows."""
        return self.page.url.partition("/c/")[2].partition("?")[0]

    @property
    def prompt(self) -> Locator:
        return self.page.get_by_label("Prompt", exact=True)

    @property
    def problem(self) -> Locator:
        return self.page.locator(".composer__problem")

    # Asking

    async def ask(self, prompt: str, *models: str) -> None:
        """Ask in a new conversation, as a person does; the tab shows it then."""
        await self.page.goto("/")
        await self.choose(*models)
        await self.send(prompt)
        await self.page.wait_for_url("**/c/*")
        await self._is_live()
        self.person.conversations.add(self.conversation)

    async def choose(self, *models: str) -> None:
        """Set the panes of the next turn."""
        choices = self.page.locator(".choice")
        while await choices.count() < len(models):
            await self.page.get_by_role("button", name="Add model").click()
        while await choices.count() > len(models):
            await self.page.get_by_role("button", name=re.compile("^Remove pane")).last.click()
        for number, model in enumerate(models):
            await choices.nth(number).locator("select").select_option(model)

    async def send(self, prompt: str) -> None:
        await self.prompt.fill(prompt)
        await self.prompt.press("Enter")

    async def open(self, conversation: str, *, transport: str = "", base: str = "") -> None:
        """Open a conversation's page, maybe by way of another address, and wait until it is connected."""
        query = f"?transport={transport}" if transport else ""
        await self.page.goto(f"{base}/c/{conversation}{query}")
        await self._is_live()

    async def open_asked(self, prompt: str, *models: str, transport: str = "", base: str = "") -> None:
        """Ask without the page, then open it."""
        await self.open(await self.person.ask(prompt, *models), transport=transport, base=base)

    async def _is_live(self) -> None:
        await self.page.wait_for_selector("conversation-view[data-connection=live]", state="attached")

    # Stopping

    def stop_button(self, number: int) -> Locator:
        return self.pane(number).locator(".pane__stop")

    async def stop(self, number: int) -> None:
        await self.stop_button(number).click()

    # Reading

    def pane(self, number: int) -> Locator:
        """A pane of the newest turn, counted from 1."""
        return self.page.locator(f"chat-turn:last-of-type .pane >> nth={number - 1}")

    def notice(self, number: int) -> Locator:
        return self.pane(number).locator(".notice")

    async def is_in(self, number: int, state: str) -> None:
        """Wait until a pane is in a state."""
        await expect(self.pane(number)).to_have_attribute("data-state", state, timeout=WAIT_S * 1000)

    async def settled(self) -> None:
        """Wait until no answer is under way."""
        live = self.page.locator(".pane:is([data-state=queued], [data-state=running])")
        await expect(live).to_have_count(0, timeout=WAIT_S * 1000)

    async def shown(self) -> list[str]:
        """Give what the panes of the newest turn show, squeezed."""
        return [squeezed(text) for text in await self.page.evaluate(_SHOWN)]

    async def shows(self, number: int, text: str) -> None:
        """Wait until a pane shows a text."""
        await expect(self.pane(number).locator("answer-body")).to_contain_text(text, timeout=WAIT_S * 1000)

    async def begun(self, *numbers: int) -> None:
        """Wait until panes show the first of their text."""

        async def all_begun() -> bool:
            shown = await self.shown()
            return all(shown[number - 1] for number in numbers)

        await until(all_begun)

    async def copied(self, number: int) -> str:
        """Give the raw text of an answer, as its Copy button gives it."""
        button = self.pane(number).locator(".pane__copy")
        await button.click()
        await expect(button).to_have_attribute("data-copied", "")
        return str(await self.page.evaluate("navigator.clipboard.readText()"))

    async def stored(self) -> list[str]:
        """Give the texts of the newest turn as the server has them."""
        return await self.person.texts(self.conversation)
