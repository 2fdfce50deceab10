"""Reloads, cut connections, second tabs and closed ones: every pane shows what its log holds, and goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Route, expect

from e2e.complaints import Complaints
from e2e.conftest import new_session
from e2e.figures import patience
from e2e.product import Product
from e2e.tap import Tap
from e2e.verbs import Chat, Person, squeezed, until
from e2e.wire import Wire

pytestmark = pytest.mark.asyncio(loop_scope="session")

TIMES = 20
# A page has this long to show what its log holds, from the beginning of its load or the cut of its connection.
RESTORED_S = 1.0
PANES = ("tap-a", "tap-b")
_IS_AT_TOP = """() => {
  const [view, turn] = [".conversation__turns", "chat-turn:last-of-type"].map((name) => document.querySelector(name));
  return Math.abs(view.getBoundingClientRect().top - turn.getBoundingClientRect().top) < 1;
}"""
# What Chromium says of a connection that was cut under it, and of a page that left while something loaded.
CUT = (r"net::ERR_", "WebSocket connection to")


@pytest_asyncio.fixture(loop_scope="session")
async def wire(sidestream: Product) -> AsyncIterator[Wire]:
    async with Wire(sidestream.url).laid() as wire:
        yield wire


async def restored(*tabs: Chat) -> None:
    """
    Wait until each tab shows the fold of the log as of now, and nothing that the log does not hold.

    What is shown lies between what the server has just before and just after: each is a prefix of the next.
    """
    before = await tabs[0].stored()
    for tab in tabs:
        await tab.page.bring_to_front()
        await until(partial(_all_begin_with, tab, before), within_s=RESTORED_S * patience())
    shown = [await tab.shown() for tab in tabs]
    after = await tabs[0].stored()
    for texts in shown:
        for text, whole in zip(texts, after, strict=True):
            assert squeezed(whole).startswith(text)


async def cut_and_missed_something(wire: Wire, tab: Chat) -> None:
    """Cut the connection, and wait until the log holds something that the tab was not told."""
    wire.cut()
    known = await tab.shown()

    async def missed_something() -> bool:
        return all(len(squeezed(text)) > len(mine) + 10 for text, mine in zip(await tab.stored(), known, strict=True))

    await until(missed_something)


async def _all_begin_with(tab: Chat, texts: list[str]) -> bool:
    shown = await tab.shown()
    pairs = zip(shown, texts, strict=False)
    return len(shown) == len(texts) and all(mine.startswith(squeezed(text)) for mine, text in pairs)


async def ended_whole(tap: Tap, *tabs: Chat) -> None:
    """Let the answers end; what was said, what is stored and what each tab shows is the same."""
    tap.finish()
    for tab in tabs:
        await tab.settled()
        answers = await tab.person.answers(tab.conversation)
        assert [answer["state"] for answer in answers] == ["completed"] * len(PANES)
        said = [tap.said[model] for model in PANES]
        assert [answer["text"] for answer in answers] == said
        assert [await tab.copied(number) for number in (1, 2)] == said
        assert await tab.shown() == [squeezed(text) for text in said]


@pytest.mark.parametrize("transport", ["socket", "sse"])
async def test_twenty_reloads_of_one_answer_lose_nothing(
    chat: Chat, tap: Tap, complaints: Complaints, transport: str
) -> None:
    complaints.announce(*CUT)
    await chat.open_asked("Drip", *PANES, transport=transport)
    for _ in range(TIMES):
        await chat.begun(1, 2)
        await chat.page.reload(wait_until="commit")
        await restored(chat)
    await ended_whole(tap, chat)


@pytest.mark.parametrize("transport", ["socket", "sse"])
async def test_twenty_cuts_of_the_connection_lose_nothing(
    chat: Chat, tap: Tap, wire: Wire, complaints: Complaints, transport: str
) -> None:
    complaints.announce(*CUT)
    await _come_back_at_once(chat)
    await chat.open_asked("Drip", *PANES, transport=transport, base=wire.address)
    for _ in range(TIMES):
        await cut_and_missed_something(wire, chat)
        await restored(chat)
    assert wire.connections > TIMES
    assert await chat.page.locator("conversation-view").get_attribute("data-transport") == (
        "events" if transport == "sse" else "socket"
    )
    await ended_whole(tap, chat)


async def test_two_tabs_stay_the_same_through_reloads_and_cuts(
    new_tab: Callable[[], Awaitable[Chat]], tap: Tap, wire: Wire, complaints: Complaints
) -> None:
    complaints.announce(*CUT)
    first, second = await new_tab(), await new_tab()
    await _come_back_at_once(first)
    await first.open_asked("Drip", *PANES, transport="socket", base=wire.address)
    await second.open(first.conversation, transport="sse")
    for _ in range(TIMES // 2):
        await second.page.reload(wait_until="commit")
        await cut_and_missed_something(wire, first)
        await restored(first, second)
    await ended_whole(tap, first, second)


async def _come_back_at_once(tab: Chat) -> None:
    """Waiting before a new connection is a matter of chance; here chance says no time, so that many cuts fit a test."""
    await tab.page.add_init_script("Math.random = () => 0")


async def test_an_answer_goes_on_and_is_kept_while_nobody_looks(
    new_tab: Callable[[], Awaitable[Chat]], tap: Tap, person: Person
) -> None:
    tab = await new_tab()
    await tab.ask("Drip", *PANES)
    await tab.begun(1, 2)
    conversation = tab.conversation
    await tab.page.close()
    half = await person.texts(conversation)
    tap.finish()

    async def has_ended() -> bool:
        return all(answer["state"] == "completed" for answer in await person.answers(conversation))

    await until(has_ended)
    back = await new_tab()
    await back.open(conversation)
    whole = [tap.said[model] for model in PANES]
    assert [await back.copied(number) for number in (1, 2)] == whole
    assert all(text.startswith(early) for early, text in zip(half, whole, strict=True))


async def test_leaving_before_the_first_token_loses_nothing(chat: Chat) -> None:
    await chat.ask("Wait", "silent", "echo")
    conversation = chat.conversation
    await chat.page.goto("/")
    await chat.open(conversation)
    await chat.is_in(1, "running")
    await chat.shows(2, "Wait")


async def test_a_reload_while_it_thinks_keeps_every_thought_however_late_the_page_listens(chat: Chat, tap: Tap) -> None:
    await chat.open_asked("Think", "tap-thinks", "tap-a")
    await chat.begun(2)
    listens = await _listens_late(chat)
    await chat.page.reload(wait_until="commit")
    known = len(await _thought(chat))

    async def has_gone_on() -> bool:
        return len(await _thought(chat)) > known + 50

    await until(has_gone_on)
    listens.set()
    await expect(chat.pane(1).locator(".pane__state")).to_have_text("Thinking")
    thoughts = chat.pane(1).locator(".reasoning__text")
    assert (await _thought(chat)).startswith(str(await thoughts.text_content()))
    tap.finish()
    await chat.settled()
    assert await thoughts.text_content() == tap.thought["tap-thinks"] == await _thought(chat)
    assert await chat.copied(1) == tap.said["tap-thinks"]


async def _listens_late(chat: Chat) -> asyncio.Event:
    """Hold the page's scripts back, when it is loaded next, until the event is set."""
    listens = asyncio.Event()

    async def hold(route: Route) -> None:
        await listens.wait()
        await route.continue_()

    await chat.page.route("**/static/js/main*.js", hold)
    return listens


async def _thought(chat: Chat) -> str:
    answers = await chat.person.answers(chat.conversation)
    return str(answers[0]["reasoning"])


async def test_a_reload_while_it_waits_shows_that_and_then_what_comes(chat: Chat, sidestream: Product) -> None:
    with sidestream.frozen("worker"):
        await chat.ask("Once you are there", "echo")
        await chat.is_in(1, "queued")
        await chat.page.reload()
        await chat.is_in(1, "queued")
        await expect(chat.stop_button(1)).to_be_enabled()
        await expect(chat.page.locator("conversation-view[data-connection=live]")).to_be_attached()
    await chat.shows(1, "Once you are there")
    await chat.is_in(1, "completed")
    assert len(await sidestream.calls("Once you are there")) == 1


async def test_a_finished_answer_looks_the_same_after_a_reload(chat: Chat) -> None:
    await chat.ask("Show me", "demo")
    await chat.settled()
    html = "document.querySelector('answer-body').innerHTML"
    live = await chat.page.evaluate(html)
    await chat.page.reload()
    assert await chat.page.evaluate(html) == live


async def test_the_newest_turn_stands_at_the_top_after_a_reload(chat: Chat) -> None:
    await chat.ask("First", "demo")
    await chat.settled()
    await chat.choose("echo")
    await chat.send("Second")
    await chat.shows(1, "Second")
    await chat.page.reload()

    async def stands_at_the_top() -> bool:
        return bool(await chat.page.evaluate(_IS_AT_TOP))

    await until(stands_at_the_top, within_s=RESTORED_S * patience())


async def test_a_second_turn_streams_into_the_page_that_showed_the_first(chat: Chat) -> None:
    await chat.ask("First", "echo", "echo")
    await chat.settled()
    await chat.send("Second")
    await chat.shows(1, "Second")
    await chat.settled()
    assert await chat.page.locator("chat-turn").count() == 2


async def test_another_window_of_the_session_is_live_too(
    chat: Chat, browser: Browser, sidestream: Product, complaints: Complaints, tap: Tap
) -> None:
    await chat.ask("Drip", *PANES)
    window = await new_session(browser, sidestream)
    await window.add_cookies(await _cookies(chat))
    other = Chat(await window.new_page(), chat.person)
    complaints.listen(other.page)
    await other.open(chat.conversation)
    await restored(chat, other)
    await ended_whole(tap, chat, other)
    await window.close()


async def _cookies(chat: Chat) -> list[Any]:
    return list(await chat.page.context.cookies())


async def test_a_stranger_finds_nothing_at_a_conversations_address(
    chat: Chat, browser: Browser, sidestream: Product
) -> None:
    await chat.ask("Mine", "echo")
    stranger = await new_session(browser, sidestream)
    page = await stranger.new_page()
    response = await page.goto(f"/c/{chat.conversation}")
    assert response
    assert response.status == 404
    await expect(page.get_by_role("heading", name="There is nothing here")).to_be_visible()
    await stranger.close()


async def test_a_turn_asked_in_one_tab_is_answered_in_the_other(
    new_tab: Callable[[], Awaitable[Chat]],
) -> None:
    first, second = await new_tab(), await new_tab()
    await first.ask("First", "echo")
    await second.open(first.conversation)
    await first.settled()
    await first.send("From the other tab")
    await second.shows(1, "From the other tab")
