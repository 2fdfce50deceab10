"""What a browser complains of, and what it asks the network for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from playwright.async_api import ConsoleMessage, Dialog, Page, Request

# What was still loading, or was a live connection, when a page went away or closed it. What a policy or a server
# refuses has other words.
_OWN_END = "net::ERR_ABORTED"


class Complaints:
    """
    Collects errors, console errors (policy violations are some), dialogs, failed requests and requests to
    strangers. What a test provokes it announces; anything else fails it.
    """

    def __init__(self) -> None:
        self.heard: list[str] = []
        self._announced: list[str] = []

    def announce(self, *patterns: str) -> None:
        """Expect complaints that match, from now on or earlier in the test."""
        self._announced += patterns

    def listen(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.heard.append(f"error: {error}"))
        page.on("console", self._console)
        page.on("dialog", self._dialog)
        page.on("requestfailed", self._failed)
        page.on("request", self._request)

    @property
    def unexpected(self) -> Sequence[str]:
        return [one for one in self.heard if not any(re.search(pattern, one) for pattern in self._announced)]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.heard.append(f"console: {message.text} at {message.location['url']}")

    async def _dialog(self, dialog: Dialog) -> None:
        self.heard.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _failed(self, request: Request) -> None:
        if request.failure != _OWN_END:
            self.heard.append(f"failed: {request.url} {request.failure}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith("http://127.0.0.1:"):
            self.heard.append(f"stranger: {request.url}")
