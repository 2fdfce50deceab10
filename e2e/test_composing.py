"""Writing prompts against the real server: what is refused is kept, and the keyboard is enough."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, expect

from e2e.complaints import Complaints
from e2e.verbs import Chat

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOO_LONG = "x" * 100_001
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}\"'><svg onload=alert(3)>"


@pytest.mark.parametrize("prompt", ["", " \n\t "])
async def test_an_empty_prompt_is_not_sent(chat: Chat, prompt: str) -> None:
    posts: list[str] = []
    chat.page.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
    await chat.page.goto("/")
    await chat.send(prompt)
    await chat.page.get_by_role("button", name="Send").click(force=True)
    await chat.page.reload()
    assert posts == []


async def test_a_prompt_that_is_too_long_is_refused_with_a_sentence_and_kept(
    chat: Chat, complaints: Complaints
) -> None:
    complaints.announce("status of 400")
    await chat.page.goto("/")
    await chat.send(TOO_LONG)
    await expect(chat.problem).to_have_text("The prompt has 100,001 characters; at most 100,000 are allowed.")
    await expect(chat.prompt).to_have_value(TOO_LONG)


async def test_the_longest_prompt_that_is_allowed_comes_back_whole(chat: Chat) -> None:
    longest = ("äöü " * 25_000)[:100_000]
    await chat.ask(longest, "tap-a")
    await expect(chat.page.locator(".turn__prompt")).to_have_text(longest.strip())


async def test_a_draft_and_its_panes_outlive_a_reload(chat: Chat) -> None:
    await chat.page.goto("/")
    await chat.choose("echo", "demo", "echo")
    await chat.prompt.fill("Half a thought")
    await chat.page.reload()
    await expect(chat.prompt).to_have_value("Half a thought")
    chosen = await chat.page.locator(".choice select").evaluate_all("all => all.map((one) => one.value)")
    assert chosen == ["echo", "demo", "echo"]


async def test_a_prompt_is_never_markup_and_neither_is_the_title_it_gives(chat: Chat) -> None:
    await chat.ask(HOSTILE, "echo")
    await chat.settled()
    await chat.page.reload()
    await expect(chat.page.locator(".turn__prompt")).to_have_text(HOSTILE)
    assert await chat.page.locator("main, nav").locator("img, script, svg[onload]").count() == 0


async def test_asking_and_stopping_need_no_mouse(chat: Chat) -> None:
    await chat.page.goto("/")
    await chat.choose("long", "echo")
    await chat.page.reload()
    await _tab_to(chat, chat.prompt)
    await chat.page.keyboard.type("By hand")
    await chat.page.keyboard.press("Enter")
    await chat.page.wait_for_url("**/c/*")
    chat.person.conversations.add(chat.conversation)
    await chat.begun(1)
    await _tab_to(chat, chat.stop_button(1))
    await chat.page.keyboard.press("Enter")
    await chat.is_in(1, "cancelled")
    await expect(chat.stop_button(1)).to_be_focused()


async def test_everything_that_can_be_clicked_can_be_reached_by_keyboard(chat: Chat) -> None:
    await chat.ask("```\ncode\n```\n\n[link](https://example.org)", "echo", "error-midway")
    await chat.settled()
    await chat.page.evaluate(_MARK_REACHABLE)
    for _ in range(80):
        await chat.page.keyboard.press("Tab")
        await chat.page.evaluate("document.activeElement.dataset.reached = ''")
    missed = await chat.page.locator("[data-must-reach]:not([data-reached])").evaluate_all(
        "all => all.map((one) => one.outerHTML.slice(0, 120))"
    )
    assert missed == []


# What is clickable and seen. Of a closed fold only its summary is.
_MARK_REACHABLE = """() => {
  for (const one of document.querySelectorAll("a[href], button, select, textarea, summary, [tabindex='0']")) {
    if (one.checkVisibility({ visibilityProperty: true }) && !one.disabled) one.dataset.mustReach = "";
  }
}"""


async def _tab_to(chat: Chat, target: Locator) -> None:
    for _ in range(60):
        await chat.page.keyboard.press("Tab")
        if await target.evaluate("one => one === document.activeElement"):
            return
    raise AssertionError(f"{target} is not reached by Tab")
