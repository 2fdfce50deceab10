"""A live connection that lost just what matters: the page finds out by itself."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import WebSocketRoute, expect

from e2e.verbs import Chat, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Chance says no time, and the page's clock can be moved on: a server pings after fifteen seconds only.
HURRIED = """
Math.random = () => 0;
const now = performance.now.bind(performance);
window.skipped = 0;
performance.now = () => now() + window.skipped;
"""
PING = '{"type":"ping"}'


class LossyLine:
    """The page's WebSocket to the product, which loses the first frame with an answer's end."""

    def __init__(self) -> None:
        self.sockets: list[WebSocketRoute] = []
        self.lost: list[str] = []

    def connected(self, socket: WebSocketRoute) -> None:
        self.sockets.append(socket)
        server = socket.connect_to_server()
        server.on_message(lambda frame: self._pass_on(socket, str(frame)))

    def _pass_on(self, socket: WebSocketRoute, frame: str) -> None:
        if not self.lost and '"type":"done"' in frame:
            self.lost.append(frame)
        else:
            socket.send(frame)


async def test_an_end_that_got_lost_is_found_by_the_second_ping(chat: Chat) -> None:
    line = LossyLine()
    await chat.page.add_init_script(HURRIED)
    await chat.page.route_web_socket(re.compile("/ws/"), line.connected)
    await chat.open_asked("Say it", "ending", transport="socket")

    async def has_ended() -> bool:
        (answer,) = await chat.person.answers(chat.conversation)
        return bool(answer["state"] == "completed" and line.lost)

    await until(has_ended)
    for _ in range(2):
        await chat.is_in(1, "running")
        await chat.page.evaluate("window.skipped += 15_000")
        line.sockets[-1].send(PING)
    await chat.is_in(1, "completed")
    assert await chat.copied(1) == "That was all."
    await expect(chat.page.locator("conversation-view[data-connection=live]")).to_be_attached()
    assert len(line.sockets) == 2
