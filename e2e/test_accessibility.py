"""axe on the real page in four states, wide and narrow, light and dark."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from axe_playwright_python.async_playwright import Axe

from e2e.verbs import Chat

pytestmark = pytest.mark.asyncio(loop_scope="session")

GRAVE = ("serious", "critical")
# axe leaves this one out unless it is asked for: nothing to be tapped is smaller than 24 pixels.
OPTIONS = {"rules": {"target-size": {"enabled": True}}}


async def empty(chat: Chat) -> None:
    await chat.page.goto("/")


async def streaming(chat: Chat) -> None:
    await chat.ask("Tell me", "demo", "long", "slow")
    await chat.begun(1, 2, 3)


async def failed(chat: Chat) -> None:
    await chat.ask("Tell me", "error-midway", "refuse-401", "echo")
    await chat.settled()


async def restored(chat: Chat) -> None:
    await chat.ask("Show me", "demo", "echo")
    await chat.settled()
    await chat.page.reload()
    await chat.begun(1, 2)


STATES = (empty, streaming, failed, restored)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
async def test_axe_finds_nothing_grave(chat: Chat, state: Callable[[Chat], Awaitable[None]]) -> None:
    await state(chat)
    found = []
    for width in (1280, 390):
        await chat.page.set_viewport_size({"width": width, "height": 800})
        for scheme in ("light", "dark"):
            await chat.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            violations = (await Axe().run(chat.page, options=OPTIONS)).response["violations"]
            grave = [one for one in violations if one["impact"] in GRAVE]
            found += [(width, scheme, one["id"], [node["html"] for node in one["nodes"]][:3]) for one in grave]
    assert found == []
