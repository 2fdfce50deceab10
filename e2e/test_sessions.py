"""A tab outlives what becomes of its session: Stop gets through, and what was typed is kept."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, expect

from e2e.complaints import Complaints
from e2e.conftest import new_session
from e2e.product import ROOT, Product
from e2e.verbs import Chat, Person, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAME, PASSWORD = "ada", "a-difference-engine"


@pytest.fixture(scope="session")
def database(folder: Path) -> Path:
    return folder / "var" / "sidestream.sqlite3"


@pytest.fixture(scope="session")
def account(sidestream: Product, folder: Path) -> None:
    """Make somebody an account, as an operator does."""
    env = {**os.environ, "SIDESTREAM_VAR": str(folder / "var"), "DJANGO_SUPERUSER_PASSWORD": PASSWORD}
    options = ["--noinput", "--username", NAME, "--email", "ada@example.org"]
    subprocess.run([sys.executable, "manage.py", "createsuperuser", *options], cwd=ROOT, env=env, check=True)


@pytest_asyncio.fixture(loop_scope="session")
async def own_session(browser: Browser, sidestream: Product) -> AsyncIterator[BrowserContext]:
    """A browser session that a test may spoil."""
    context = await new_session(browser, sidestream)
    yield context
    await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def tab(own_session: BrowserContext, complaints: Complaints) -> Chat:
    page = await own_session.new_page()
    complaints.listen(page)
    return Chat(page, Person(own_session.request))


async def sign_in(session: BrowserContext) -> None:
    page = await session.new_page()
    await page.goto("/login")
    await page.get_by_label("Name").fill(NAME)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("button", name="Sign out")).to_be_attached()
    await page.close()


async def sign_out(session: BrowserContext) -> None:
    page = await session.new_page()
    await page.goto("/")
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("link", name="Sign in")).to_be_attached()
    await page.close()


async def is_closed_at_the_model(sidestream: Product, prompt: str) -> None:
    async def are_aborted() -> bool:
        calls = await sidestream.calls(prompt)
        return bool(calls) and all(call["outcome"] == "aborted" for call in calls)

    await until(are_aborted)


@pytest.mark.usefixtures("account")
async def test_a_guests_tab_goes_on_after_a_sign_in_in_another(
    tab: Chat, own_session: BrowserContext, sidestream: Product
) -> None:
    await tab.ask("Signed in elsewhere", "long", "long", "long")
    await tab.begun(1, 2, 3)
    await sign_in(own_session)
    await tab.stop(1)
    await tab.is_in(1, "cancelled")
    await tab.page.get_by_role("button", name="Stop all").click()
    await tab.settled()
    await is_closed_at_the_model(sidestream, "Signed in elsewhere")
    await tab.choose("echo")
    await tab.send("And further")
    await tab.shows(1, "And further")
    await tab.settled()
    await expect(tab.problem).to_be_hidden()


@pytest.mark.usefixtures("account")
async def test_a_tab_stops_after_a_sign_out_in_another(
    tab: Chat, own_session: BrowserContext, sidestream: Product, complaints: Complaints
) -> None:
    await sign_in(own_session)
    await tab.ask("Signed out elsewhere", "long", "long")
    await tab.begun(1, 2)
    await tab.prompt.fill("Half a thou")
    await sign_out(own_session)
    await tab.stop(1)
    await tab.is_in(1, "cancelled")
    await tab.page.get_by_role("button", name="Stop all").click()
    await tab.is_in(2, "cancelled")
    await is_closed_at_the_model(sidestream, "Signed out elsewhere")
    complaints.announce("404")
    await tab.prompt.press("Enter")
    await expect(tab.problem).to_contain_text("If you signed out, sign in again.")
    await expect(tab.prompt).to_have_value("Half a thou")


async def test_a_tab_stops_after_its_cookies_were_cleared(
    tab: Chat, own_session: BrowserContext, sidestream: Product, complaints: Complaints
) -> None:
    complaints.announce("404", "WebSocket")
    await tab.ask("Without cookies", "long")
    await tab.begun(1)
    await own_session.clear_cookies()
    # The connection comes to its end too: the page is told that nothing is there for it, and looks no more.
    await tab.page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    await tab.page.wait_for_selector("conversation-view[data-connection=gone]", state="attached")
    await tab.stop(1)
    await tab.is_in(1, "cancelled")
    await is_closed_at_the_model(sidestream, "Without cookies")


async def test_a_stop_without_network_is_kept_and_sent(
    tab: Chat, own_session: BrowserContext, sidestream: Product, complaints: Complaints
) -> None:
    complaints.announce("ERR_INTERNET_DISCONNECTED", "WebSocket")
    await tab.ask("Without network", "long")
    await tab.begun(1)
    await own_session.set_offline(True)
    await tab.stop(1)
    await expect(tab.pane(1).locator(".pane__state")).to_have_text("Stops when connected")
    await expect(tab.problem).to_contain_text("Your stop is kept")
    await own_session.set_offline(False)
    await tab.is_in(1, "cancelled")
    await is_closed_at_the_model(sidestream, "Without network")
    await expect(tab.problem).to_be_hidden()


async def test_a_session_that_is_used_does_not_end(tab: Chat, own_session: BrowserContext, database: Path) -> None:
    await tab.ask("Use me", "echo")
    await tab.settled()
    (cookie,) = [one for one in await own_session.cookies() if one["name"] == "sidestream_session"]
    soon = datetime.now(UTC) + timedelta(seconds=60)
    with sqlite3.connect(database) as rows:
        statement = "UPDATE django_session SET expire_date = ? WHERE session_key = ?"
        rows.execute(statement, (soon.strftime("%Y-%m-%d %H:%M:%S.%f"), cookie["value"]))
    rows.close()
    began = time.time()
    await tab.page.reload()
    await tab.shows(1, "Use me")
    (renewed,) = [one for one in await own_session.cookies() if one["name"] == "sidestream_session"]
    assert renewed["value"] == cookie["value"]
    assert renewed["expires"] > began + timedelta(days=364).total_seconds()
    with sqlite3.connect(database) as rows:
        ((ends_at,),) = rows.execute("SELECT expire_date FROM django_session WHERE session_key = ?", (cookie["value"],))
    rows.close()
    assert datetime.fromisoformat(ends_at).replace(tzinfo=UTC) > soon + timedelta(days=300)
