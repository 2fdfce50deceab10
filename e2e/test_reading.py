"""Reading while real answers stream in: nothing takes the focus, the selection or the place away."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from e2e.tap import Tap
from e2e.verbs import Chat, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHUNKS = 200
# A number in a header may become wider. A tenth is what the web calls good.
SHIFT = 0.01
_SELECT_FIRST_BLOCK = """() => {
  const range = document.createRange();
  range.selectNodeContents(document.querySelector("answer-body p"));
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  return getSelection().toString();
}"""
# What moves around the answers although nobody touched the page, as the browser scores it. Inside of them it
# counts the plain tail as moved when its text goes over into a block, at the same place on the screen.
_WATCH_LAYOUT = """() => {
  window.shifted = 0;
  const isOutside = ({ node }) => !(node?.parentElement ?? node)?.closest("answer-body");
  new PerformanceObserver((list) => {
    for (const shift of list.getEntries()) {
      if (!shift.hadRecentInput && shift.sources.some(isOutside)) window.shifted += shift.value;
    }
  }).observe({ type: "layout-shift" });
}"""
_FIRST_BLOCK = "() => document.querySelector('answer-body p').offsetTop"

_PLACES = "() => [...document.querySelectorAll('.pane, .composer')].map((one) => one.getBoundingClientRect().toJSON())"


async def _further(tap: Tap, chunks: int) -> None:
    """Wait until so many more words have been said."""
    wanted = tap.said["tap-a"].count(" ") + chunks

    async def said() -> bool:
        return tap.said["tap-a"].count(" ") >= wanted

    await until(said)


async def _sealed(chat: Chat) -> None:
    await expect(chat.pane(1).locator("answer-body p").nth(1)).to_be_attached(timeout=20_000)


async def test_a_selection_in_a_sealed_block_survives_two_hundred_chunks(chat: Chat, tap: Tap) -> None:
    await chat.ask("Drip", "tap-a", "tap-b")
    await _sealed(chat)
    selected = await chat.page.evaluate(_SELECT_FIRST_BLOCK)
    await _further(tap, CHUNKS)
    await chat.page.keyboard.press("Control+c")
    assert await chat.page.evaluate("getSelection().toString()") == selected
    assert await chat.page.evaluate("navigator.clipboard.readText()") == selected


async def test_typing_the_next_prompt_is_never_disturbed(chat: Chat, tap: Tap) -> None:
    await chat.ask("Drip", "tap-a", "tap-b")
    await chat.begun(1, 2)
    await chat.prompt.focus()
    await chat.prompt.press_sequentially("What comes next", delay=20)
    tap.finish()
    await chat.settled()
    await expect(chat.prompt).to_be_focused()
    await expect(chat.prompt).to_have_value("What comes next")


async def test_who_scrolls_up_stays_there_while_the_other_pane_follows(chat: Chat, tap: Tap) -> None:
    await chat.ask("Drip", "tap-a", "tap-b")
    scroller, other = (chat.pane(number).locator(".pane__scroller") for number in (1, 2))

    async def is_long() -> bool:
        return bool(await scroller.evaluate("e => e.scrollHeight > e.clientHeight + 200"))

    await until(is_long)
    await scroller.hover()
    await chat.page.mouse.wheel(0, -150)
    await expect(chat.pane(1).locator(".pane__jump")).to_be_visible()
    await _further(tap, 30)  # The browser scrolls smoothly; by now it has arrived.
    top = await scroller.evaluate("e => e.scrollTop")
    await _further(tap, CHUNKS)
    assert await scroller.evaluate("e => e.scrollTop") == top

    async def is_at_end() -> bool:
        return bool(await other.evaluate("e => e.scrollHeight - e.clientHeight - e.scrollTop <= 2"))

    await until(is_at_end, within_s=1)


async def test_nothing_jumps_while_answers_stream(chat: Chat, tap: Tap) -> None:
    await chat.ask("Drip", "tap-a", "tap-b")
    await _sealed(chat)
    before = [await chat.page.evaluate(places) for places in (_PLACES, _FIRST_BLOCK)]
    await chat.page.evaluate(_WATCH_LAYOUT)
    await _further(tap, CHUNKS)
    tap.finish()
    await chat.settled()
    assert [await chat.page.evaluate(places) for places in (_PLACES, _FIRST_BLOCK)] == before
    assert await chat.page.evaluate("window.shifted") <= SHIFT
