"""Stop: the model really stops, at once and at any moment, and nothing else does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import expect

from e2e.figures import Figures, patience, percentile
from e2e.product import Product
from e2e.tap import Tap
from e2e.verbs import Chat, squeezed, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

RUNS = 5
# From the click until the model service sees its connection closed.
STOPPED_MS = 200
_NOTE_CLICK = "addEventListener('click', () => (window.clickedAt = Date.now()), { capture: true, once: true })"


async def _connecting(chat: Chat) -> None:
    await chat.is_in(1, "running")


async def _mid_token(chat: Chat) -> None:
    await chat.begun(1)


async def _at_the_end(chat: Chat) -> None:
    await chat.shows(1, "That was all.")


@pytest.mark.parametrize(
    ("model", "moment"),
    [("never-opens", _connecting), ("silent", _connecting), ("long", _mid_token), ("ending", _at_the_end)],
)
async def test_stop_closes_the_models_connection_at_any_moment_and_touches_no_other_pane(
    chat: Chat,
    sidestream: Product,
    tap: Tap,
    figures: Figures,
    model: str,
    moment: Callable[[Chat], Awaitable[None]],
) -> None:
    taken = []
    for run in range(RUNS):
        tap.open()
        await chat.open_asked(f"Stop {model} {run}", model, "tap-a")
        await _is_called(sidestream, f"Stop {model} {run}")
        await moment(chat)
        taken.append(await _stop_and_measure(chat, sidestream, f"Stop {model} {run}"))
        await _ends_as_it_was_shown(chat, tap)
    for ms in taken:
        figures.add(f"from the click on Stop until {model}'s connection is closed", ms)
    assert percentile(taken, 50) <= STOPPED_MS * patience()


async def _is_called(sidestream: Product, prompt: str) -> None:
    async def is_called() -> bool:
        return bool(await sidestream.calls(prompt))

    await until(is_called)


async def _stop_and_measure(chat: Chat, sidestream: Product, prompt: str) -> float:
    """Both times are the machine's clock: the browser's at the click, the service's when it saw the end."""
    await chat.page.evaluate(_NOTE_CLICK)
    await chat.stop(1)
    await chat.is_in(1, "cancelled")
    clicked_at = await chat.page.evaluate("window.clickedAt")
    (call,) = await sidestream.calls(prompt)
    assert call["outcome"] == "aborted"
    return float(call["closed_at"] - clicked_at)


async def _ends_as_it_was_shown(chat: Chat, tap: Tap) -> None:
    tap.finish()
    await chat.settled()
    stopped, other = await chat.stored()
    assert other == tap.said["tap-a"]
    assert await chat.shown() == [squeezed(stopped), squeezed(other)]
    if stopped:
        assert await chat.copied(1) == stopped


async def test_an_answer_that_is_stopped_while_it_waits_never_calls_the_model(chat: Chat, sidestream: Product) -> None:
    with sidestream.frozen("worker"):
        await chat.ask("Never mind", "long", "echo")
        await chat.is_in(1, "queued")
        await chat.stop(1)
        await chat.is_in(1, "cancelled")
        await chat.is_in(2, "queued")
    await chat.is_in(2, "completed")
    assert [call["model"] for call in await sidestream.calls("Never mind")] == ["echo@400"]


async def test_stop_all_leaves_no_call_open(chat: Chat, sidestream: Product) -> None:
    await chat.ask("All of you", *["long"] * 8)
    await chat.begun(*range(1, 9))
    await chat.page.get_by_role("button", name="Stop all").click()
    await chat.settled()
    calls = await sidestream.calls("All of you")
    assert [call["outcome"] for call in calls] == ["aborted"] * 8


async def test_a_stopped_pane_takes_the_next_prompt_and_forgets_the_old_answer(chat: Chat) -> None:
    await chat.ask("Go on for ever", "long")
    await chat.begun(1)
    await chat.stop(1)
    await chat.is_in(1, "cancelled")
    await chat.choose("echo")
    await chat.send("Just this")
    await chat.shows(1, "Just this")
    await chat.settled()
    assert await chat.copied(1) == "Just this"


async def test_after_a_reload_an_answer_can_still_be_stopped(chat: Chat) -> None:
    await chat.ask("Go on", "long")
    await chat.begun(1)
    await chat.page.reload()
    await chat.stop(1)
    await chat.is_in(1, "cancelled")
    await expect(chat.notice(1)).to_contain_text("This answer is partial.")


@pytest.mark.parametrize("run", range(RUNS))
async def test_a_stop_holds_when_the_page_is_left_in_the_same_moment_and_the_next_prompt_is_taken(
    chat: Chat, sidestream: Product, run: int
) -> None:
    await chat.ask(f"Never mind {run}", "silent")
    await _is_called(sidestream, f"Never mind {run}")
    conversation = chat.conversation
    async with chat.page.expect_navigation(url="about:blank"):
        await chat.stop_button(1).evaluate("(button) => { button.click(); location.href = 'about:blank'; }")
    await chat.open(conversation)
    await chat.is_in(1, "cancelled")
    await chat.choose("echo")
    await chat.send("Then this")
    await chat.shows(1, "Then this")
    await chat.settled()
    await expect(chat.page.locator("chat-turn:first-of-type .pane")).to_have_attribute("data-state", "cancelled")
    (call,) = await sidestream.calls(f"Never mind {run}")
    assert call["outcome"] == "aborted"
