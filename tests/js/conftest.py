"""A browser for the tests of the page, and a site that it may visit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, Playwright, async_playwright

from tests.js.scenes import Scene, launch
from tests.js.site import Site, serve


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    with serve() as running:
        running.pages["/unit"] = "<!doctype html><title>Modules</title>"
        yield running


# One loop for all of them: a browser belongs to the loop that started it.
@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def playwright() -> AsyncIterator[Playwright]:
    async with async_playwright() as playwright:
        yield playwright


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser(playwright: Playwright) -> AsyncIterator[Browser]:
    browser = await launch(playwright)
    yield browser
    await browser.close()


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def context(browser: Browser, site: Site) -> AsyncIterator[BrowserContext]:
    """One for all pages, so that scripts and styles are loaded once. A page's storage is its own."""
    context = await browser.new_context(
        base_url=site.address,
        viewport={"width": 1280, "height": 800},
        permissions=["clipboard-read", "clipboard-write"],
    )
    yield context
    await context.close()


@pytest.fixture
def complaints() -> list[str]:
    """What the browser complained of. A test that provokes something takes it out again."""
    return []


@pytest_asyncio.fixture(loop_scope="session")
async def page(context: BrowserContext, complaints: list[str]) -> AsyncIterator[Page]:
    """A page that fails its test on any error that nobody caught, policy violations included."""
    page = await context.new_page()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    yield page
    await page.close()
    # A refusal that a test plays is no fault of the page.
    refusals = ("Failed to load resource", "WebSocket connection to")
    assert [text for text in complaints if not text.startswith(refusals)] == []


@pytest_asyncio.fixture(loop_scope="session")
async def scene(page: Page, site: Site) -> Scene:
    return Scene(page, site)
