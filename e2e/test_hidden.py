"""A tab in the background: it only keeps count, and is right at the first look."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext

from e2e.product import Product
from e2e.realtabs import RealBrowser, real_browser
from e2e.tap import Tap
from e2e.verbs import Person, squeezed, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

_TEXT = "document.querySelector('answer-body').textContent"
# Counts what is painted while hidden, and keeps what the second frame after the return shows.
_WATCH = f"""
window.painted = 0;
new MutationObserver(() => (window.painted += 1))
  .observe(document.querySelector("answer-body"), {{ childList: true, characterData: true, subtree: true }});
document.addEventListener("visibilitychange", () => {{
  if (document.hidden) window.painted = 0;
  else requestAnimationFrame(() => requestAnimationFrame(() => (window.firstLook = {_TEXT})));
}});
"""


@pytest_asyncio.fixture(loop_scope="session")
async def windows(
    chromium: tuple[str | None, list[str]], session: BrowserContext, person: Person, tmp_path: Path
) -> AsyncIterator[RealBrowser]:
    """A browser with the guest's cookies."""
    path, arguments = chromium
    await person.begin()  # Who has asked for nothing has no cookie.
    async with real_browser(str(path), arguments, tmp_path) as windows:
        await windows.send("Storage.setCookies", {"cookies": await session.cookies()})
        yield windows


async def test_a_hidden_tab_paints_nothing_and_shows_all_at_the_first_look(
    windows: RealBrowser, sidestream: Product, person: Person, tap: Tap
) -> None:
    conversation = await person.ask("Drip", "tap-a")
    tab = await windows.open_tab(f"{sidestream.url}/c/{conversation}")
    await until(lambda: tab.holds(f"document.querySelector('answer-body') && {_TEXT} !== ''"))
    await tab.evaluate(_WATCH)
    other = await windows.open_tab("about:blank")
    await until(lambda: tab.holds("document.hidden"))
    tap.finish()
    await until(lambda: tab.holds("document.title.startsWith('✓')"))
    assert await tab.evaluate("window.painted") == 0
    await tab.to_front()
    await until(lambda: tab.holds("window.firstLook !== undefined"))
    assert squeezed(await tab.evaluate("window.firstLook")) == squeezed(tap.said["tap-a"])
    assert await other.evaluate("document.hidden")


async def test_a_tab_that_was_frozen_catches_up_when_it_wakes(
    windows: RealBrowser, sidestream: Product, person: Person, tap: Tap
) -> None:
    conversation = await person.ask("Drip", "tap-a")
    tab = await windows.open_tab(f"{sidestream.url}/c/{conversation}")
    await until(lambda: tab.holds(f"document.querySelector('answer-body') && {_TEXT} !== ''"))
    await windows.open_tab("about:blank")
    await tab.set_lifecycle("frozen")
    tap.finish()

    async def has_ended() -> bool:
        (answer,) = await person.answers(conversation)
        return bool(answer["state"] == "completed")

    await until(has_ended)
    await tab.set_lifecycle("active")
    await tab.to_front()

    async def shows_all() -> bool:
        return squeezed(await tab.evaluate(_TEXT)) == squeezed(tap.said["tap-a"])

    await until(shows_all)
