"""Conversations for the page to show: what the server would send, made by the server's own reducer and renderer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser, Page, Playwright, WebSocketRoute

from e2e.browser import chromium_arguments, chromium_path
from streaming.events import (
    BlockView,
    Body,
    Cancelled,
    Done,
    Error,
    Event,
    ReasoningDelta,
    Start,
    TextDelta,
    ToolComplete,
    ToolDelta,
    event_to_dict,
    view_to_dict,
)
from streaming.frames import events_frame
from streaming.markdown import BlockRenderer
from streaming.snapshot import Snapshot, fold, fold_view, snapshot_to_dict
from tests.js.site import Site, render

Json = Any

MODELS = [
    {"id": "careful", "label": "SmolLM2 careful", "available": True, "params": {"temperature": 0}, "reason": None},
    {"id": "lively", "label": "SmolLM2 lively", "available": True, "params": {"temperature": 1}, "reason": None},
    {"id": "demo", "label": "Scripted demo", "available": True, "params": {}, "reason": None},
    {"id": "gpt", "label": "GPT", "available": False, "params": {}, "reason": "Set OPENAI_API_KEY to use this model."},
]
URLS = {
    "home": "/",
    "conversations": "/api/conversations",
    "models": "/api/models",
    "conversation": "/api/conversations/c",
    "sync": "/api/conversations/c/sync",
    "events": "/api/conversations/c/events",
    "socket": "/ws/conversations/c",
    "turns": "/api/conversations/c/turns",
    "export": "/api/conversations/c/export",
    "cancelAll": "/api/conversations/c/cancel",
    "generation": "/api/generations/{gen}",
    "cancel": "/api/generations/{gen}/cancel",
    "retry": "/api/generations/{gen}/retry",
    "continue": "/api/generations/{gen}/continue",
    "session": "/api/session",
}
CONVERSATIONS = [
    {"id": "c", "title": "How tides work", "updated_at": "2026-01-02"},
    {"id": "d", "title": "Merging overlapping intervals in Python", "updated_at": "2026-01-01"},
]
# When the scenes' prompts were sent.
BEGAN = 1_700_000_000_000


@dataclass(slots=True)
class Answer:
    """A generation that a test writes. Each method gives what goes into a frame."""

    gen: str
    model: str = "careful"
    pane: str = ""
    snapshot: Snapshot = field(init=False)
    at: int = BEGAN
    _blocks: BlockRenderer = field(default_factory=BlockRenderer)

    def __post_init__(self) -> None:
        self.snapshot = Snapshot(self.gen, model=self.model, pane=self.pane or f"pane-{self.gen}")

    def start(self) -> list[Json]:
        return self._event(Start(self.model, self.snapshot.pane))

    def text(self, text: str) -> list[Json]:
        entries = self._event(TextDelta(text))
        self._blocks.feed(text)
        return entries + [self._view(view) for view in self._blocks.views(self.at)]

    def reasoning(self, text: str) -> list[Json]:
        return self._event(ReasoningDelta(text))

    def tool_piece(self, call: str, arguments: str, name: str | None = None) -> list[Json]:
        return self._event(ToolDelta(call, arguments, name))

    def tool(self, call: str, name: str, arguments: str) -> list[Json]:
        return self._event(ToolComplete(call, name, arguments))

    def done(self, finish: str = "stop") -> list[Json]:
        entries = [self._view(view) for view in self._blocks.finish()]
        return entries + self._event(Done(finish, "", len(self.snapshot.text), self._timings()))

    def cancelled(self) -> list[Json]:
        return self._event(Cancelled("user", "closed", 43, len(self.snapshot.text), self._timings()))

    def failed(
        self, message: str = "The model service broke the answer off. Try again.", said: str | None = None
    ) -> list[Json]:
        body = Error("upstream_interrupted", message, True, False, len(self.snapshot.text), self._timings(), said)
        return self._event(body)

    def _event(self, body: Body) -> list[Json]:
        self.at += 100
        event = Event(self.gen, 1, self.snapshot.seq + 1, self.at, body)
        self.snapshot = fold(self.snapshot, event)
        return [event_to_dict(event)]

    def _view(self, rendered: Any) -> Json:
        view = BlockView(self.gen, self.snapshot.seq, rendered.index, rendered.html, rendered.sealed, rendered.length)
        self.snapshot = fold_view(self.snapshot, view)
        return view_to_dict(view)

    def _timings(self) -> dict[str, int]:
        times = {"queued_at": BEGAN, "started_at": BEGAN + 8, "connected_at": BEGAN + 21, "first_token_at": BEGAN + 240}
        return {**times, "last_token_at": self.at, "ended_at": self.at + 12, "longest_gap_ms": 130}


def turn(turn_id: str, prompt: str, answers: Sequence[Answer]) -> Json:
    generations = [snapshot_to_dict(answer.snapshot) for answer in answers]
    return {"id": turn_id, "prompt": prompt, "created_at": BEGAN, "generations": generations}


def sync(*turns: Json, panes: Sequence[Json] = (), cursor: str = "1-0") -> Json:
    conversation = {"id": "c", "title": "How tides work", "created_at": BEGAN}
    return {"v": 1, "conversation": conversation, "cursor": cursor, "panes": list(panes), "turns": list(turns)}


async def launch(playwright: Playwright) -> Browser:
    """Start the Chromium that the browser tests use."""
    path = chromium_path(playwright)  # type: ignore[arg-type]  # It asks for a path only, sync or not.
    return await playwright.chromium.launch(executable_path=path, args=chromium_arguments())


class Scene:
    """A page with everything around it in the test's hands."""

    def __init__(self, page: Page, site: Site) -> None:
        self.page = page
        self.site = site
        self.sockets: list[WebSocketRoute] = []
        self.acks: list[str] = []
        # What the page asks of the server, and what it is answered: the site's, begun anew.
        self.requests: list[tuple[str, str, Json]] = []
        self.replies: dict[tuple[str, str], tuple[int, Json]] = {}
        site.requests, site.replies = self.requests, self.replies
        self._frames = 1

    async def open(
        self, document: Json, *, query: str = "", sockets: bool = True, conversations: Sequence[Json] = CONVERSATIONS
    ) -> None:
        """Open the conversation's page; it is loaded when its elements have been painted."""
        await self._route_sockets(possible=sockets)
        self.replies.setdefault(("GET", "/api/conversations/c/sync"), (200, document))
        self.show(document, conversations)
        await self.page.goto(f"/c/c{query}")
        await self.page.wait_for_selector("conversation-view:defined")

    def show(self, document: Json, conversations: Sequence[Json] = CONVERSATIONS) -> None:
        """Make this the document that comes with the page."""
        context = {"sync": document, "conversation": document["conversation"], "urls": URLS, "models": MODELS}
        self.site.pages["/c/c"] = render("chatapp/conversation.html", {**context, "conversations": conversations})

    async def open_new(self, models: Sequence[Mapping[str, Json]] = MODELS) -> None:
        """Open the page of a conversation that is not there yet."""
        await self._route_sockets(possible=True)
        urls = {**URLS, "turns": "/api/conversations/{conversation}/turns"}
        context = {"urls": urls, "models": list(models), "conversations": CONVERSATIONS}
        self.site.pages["/"] = render("chatapp/index.html", context)
        await self.page.goto("/")
        await self.page.wait_for_selector("new-conversation:defined")

    async def say(self, *entries: list[Json]) -> None:
        """Send one frame, and wait until the page has painted it."""
        self._frames += 1
        encoded = [json.dumps(entry) for part in entries for entry in part]
        await self.send(events_frame(f"{self._frames}-0", encoded))

    async def send(self, frame: str) -> None:
        await self.page.wait_for_selector("conversation-view[data-connection=live]")
        self.sockets[-1].send(frame)
        # The frame comes to the page in order with this, and is painted in the frame after.
        painted = "new Promise((done) => setTimeout(() => requestAnimationFrame(() => setTimeout(done))))"
        await self.page.evaluate(painted)

    async def _route_sockets(self, *, possible: bool) -> None:
        if possible:
            await self.page.route_web_socket(re.compile("/ws/"), self._connected)
        # Without a route the site refuses the upgrade, as a proxy without sockets does.

    def _connected(self, socket: WebSocketRoute) -> None:
        self.sockets.append(socket)
        socket.on_message(lambda text: self.acks.append(json.loads(text)["cursor"]))
