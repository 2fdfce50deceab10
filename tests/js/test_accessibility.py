"""axe on the page in each of its states, light and dark."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page

from tests.js import shots
from tests.js.scenes import Scene
from tests.js.site import Site

pytestmark = pytest.mark.asyncio(loop_scope="session")


# 320 CSS pixels are WCAG's measure for reflow: a wide page at four times its size.
@pytest.mark.parametrize("width", [320, 390])
@pytest.mark.parametrize("state", sorted(shots.STATES))
async def test_a_narrow_page_scrolls_one_way(page: Page, site: Site, state: str, width: int) -> None:
    await page.set_viewport_size({"width": width, "height": 700})
    await shots.STATES[state](Scene(page, site))
    wider = (
        "[...document.querySelectorAll('body, body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)"
    )
    hidden = "!e.closest('.pane__scroller, .switch, .visually-hidden, .skip-link, .sprite')"
    found = await page.evaluate(f"{wider}.filter((e) => {hidden}).map((e) => e.className || e.localName)")
    assert found == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", sorted(shots.STATES))
async def test_axe_finds_nothing(page: Page, site: Site, state: str, scheme: str) -> None:
    await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    open_state: Callable[[Scene], Awaitable[None]] = shots.STATES[state]
    await open_state(Scene(page, site))
    found = (await Axe().run(page)).response["violations"]
    assert [(one["id"], one["impact"], [node["html"] for node in one["nodes"]][:3]) for one in found] == []
