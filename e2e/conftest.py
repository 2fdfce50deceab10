"""The product, running, and a browser in front of it. Everything here is real but the scripted model services."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Playwright, async_playwright

from e2e.browser import chromium_arguments, chromium_path
from e2e.catalogue import write_catalogue, write_scripts
from e2e.complaints import Complaints
from e2e.figures import Figures
from e2e.product import Product, closed_port, product, scripted_service
from e2e.tap import Tap
from e2e.verbs import Chat, Person

_LOG_CHARS = 4000
_FIGURES = pytest.StashKey[Figures]()
# Without these a system's Chromium asks its maker's hosts for things at every start.
_QUIET = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """Give a folder with a short path, for the product keeps a Unix socket in it."""
    with tempfile.TemporaryDirectory(prefix="e2e-") as path:
        yield Path(path)


# One loop for all of them: a browser belongs to the loop that started it.
@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def dripping_service() -> AsyncIterator[Tap]:
    async with Tap().serve() as serving:
        yield serving


@pytest.fixture
def tap(dripping_service: Tap) -> Iterator[Tap]:
    """Give the tap, open; what still drips after the test ends."""
    dripping_service.open()
    yield dripping_service
    dripping_service.finish()


@pytest.fixture(scope="session")
def sidestream(folder: Path, dripping_service: Tap) -> Iterator[Product]:
    """The product, started once for all tests; its log is shown if it does not start."""
    write_scripts(folder / "scripts")
    with scripted_service(folder) as scripted:
        refused = f"http://127.0.0.1:{closed_port()}"
        write_catalogue(folder / "models.toml", scripted=scripted, tap=dripping_service.address, refused=refused)
        with product(folder, scripted) as running:
            yield running


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def playwright() -> AsyncIterator[Playwright]:
    async with async_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def chromium(playwright: Playwright) -> tuple[str | None, list[str]]:
    """Give Chromium's path and arguments."""
    path = chromium_path(playwright)  # type: ignore[arg-type]  # It asks for a path only, sync or not.
    return path, [*chromium_arguments(), *_QUIET]


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser(playwright: Playwright, chromium: tuple[str | None, list[str]]) -> AsyncIterator[Browser]:
    path, arguments = chromium
    browser = await playwright.chromium.launch(executable_path=path, args=arguments)
    yield browser
    await browser.close()


@pytest.fixture(scope="session")
def figures(pytestconfig: pytest.Config) -> Figures:
    """Keep what tests measure; it is printed at the end of the run."""
    return pytestconfig.stash.setdefault(_FIGURES, Figures())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if (figures := config.stash.get(_FIGURES, None)) is not None:
        terminalreporter.section("measured in the browser")
        for line in figures.lines():
            terminalreporter.line(line)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the end of the product's log under a test that failed."""
    report = yield
    sidestream = getattr(item, "funcargs", {}).get("sidestream")
    if report.failed and isinstance(sidestream, Product):
        report.sections.append(("what the product said last", sidestream.program.said[-_LOG_CHARS:]))
    return report


@pytest.fixture
def complaints() -> Iterator[Complaints]:
    """Fail the test on whatever the browser complains of and the test did not announce."""
    complaints = Complaints()
    yield complaints
    assert complaints.unexpected == []


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def session(browser: Browser, sidestream: Product) -> AsyncIterator[BrowserContext]:
    """A guest's browser session: one for all tests, so that scripts and styles are loaded once."""
    context = await new_session(browser, sidestream)
    yield context
    await context.close()


async def new_session(browser: Browser, sidestream: Product) -> BrowserContext:
    return await browser.new_context(
        base_url=sidestream.url,
        viewport={"width": 1280, "height": 800},
        permissions=["clipboard-read", "clipboard-write"],
    )


@pytest_asyncio.fixture(loop_scope="session")
async def person(session: BrowserContext) -> AsyncIterator[Person]:
    """The guest. What the test has them begin is deleted after it."""
    person = Person(session.request)
    yield person
    await person.leave()


@pytest_asyncio.fixture(loop_scope="session")
async def new_tab(
    session: BrowserContext, person: Person, complaints: Complaints
) -> AsyncIterator[Callable[[], Awaitable[Chat]]]:
    """Open a further tab of the guest's."""
    tabs: list[Chat] = []

    async def new_tab() -> Chat:
        page = await session.new_page()
        complaints.listen(page)
        tabs.append(Chat(page, person))
        return tabs[-1]

    yield new_tab
    for tab in tabs:
        await tab.page.close()


@pytest_asyncio.fixture(loop_scope="session")
async def chat(new_tab: Callable[[], Awaitable[Chat]]) -> Chat:
    """The guest's tab."""
    return await new_tab()
