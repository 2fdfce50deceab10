"""Writing prompts, choosing panes, and stopping answers."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, Playwright, expect

from tests.js import scenes
from tests.js.scenes import Answer, Scene
from tests.js.site import Site
from tests.js.verbs import (
    PANES,
    expect_eventually,
    expect_spoken,
    finished,
    pane,
    prompt,
    text_of,
    two_live,
    write,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Keeps every sentence that a screen reader is told.
KEEP_SPOKEN = """addEventListener("DOMContentLoaded", () => {
  window.spoken = [];
  const note = (records) => records.forEach((one) => one.addedNodes.forEach((line) => spoken.push(line.textContent)));
  new MutationObserver(note).observe(document.querySelector("live-announcer [role=status]"), { childList: true });
})"""


# Writing


async def test_enter_sends_the_prompt_to_the_panes_as_they_stand(scene: Scene) -> None:
    await finished(scene)
    scene.replies["POST", "/api/conversations/c/turns"] = (201, {"turn": scenes.turn("u", "Next", [Answer("c")])})
    await write(scene, "Next")
    await scene.page.keyboard.press("Enter")
    await expect(scene.page.locator("chat-turn")).to_have_count(2)
    (_, _, body), *_ = scene.requests
    assert re.fullmatch(r"[\da-f-]{36}", body.pop("key"))
    assert body == {"prompt": "Next", "panes": PANES}
    await expect(prompt(scene)).to_have_value("")


async def test_shift_and_enter_begin_a_line(scene: Scene) -> None:
    await finished(scene)
    await write(scene, "One")
    await scene.page.keyboard.press("Shift+Enter")
    await scene.page.keyboard.type("Two")
    await expect(prompt(scene)).to_have_value("One\nTwo")
    assert scene.requests == []


async def test_enter_that_ends_composing_does_not_send(scene: Scene) -> None:
    await finished(scene)
    await write(scene, "にほん")
    enter = "new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true, cancelable: true })"
    await scene.page.evaluate(f"document.querySelector('#prompt').dispatchEvent({enter})")
    assert scene.requests == []


async def test_on_the_screens_keyboard_enter_begins_a_line_and_the_button_sends(
    browser: Browser, playwright: Playwright, site: Site
) -> None:
    context = await browser.new_context(base_url=site.address, **playwright.devices["Pixel 7"])
    scene = Scene(await context.new_page(), site)
    await finished(scene)
    scene.replies["POST", "/api/conversations/c/turns"] = (201, {"turn": scenes.turn("u", "Next", [Answer("c")])})
    await prompt(scene).tap()
    await scene.page.keyboard.type("One\nTwo")
    await expect(prompt(scene)).to_have_value("One\nTwo")
    await expect(prompt(scene)).to_have_attribute("enterkeyhint", "enter")
    assert scene.requests == []
    await scene.page.get_by_role("button", name="Send").tap()
    await expect(scene.page.locator("chat-turn")).to_have_count(2)
    assert scene.requests[0][2]["prompt"] == "One\nTwo"
    await context.close()


async def test_a_real_keyboards_enter_is_called_what_it_does(scene: Scene) -> None:
    await finished(scene)
    await expect(prompt(scene)).to_have_attribute("enterkeyhint", "send")


@pytest.mark.parametrize("page_of", ["new", "old"])
async def test_a_page_works_in_a_browser_that_keeps_nothing(scene: Scene, page_of: str) -> None:
    """Chromium throws at the name itself when a site may keep no data."""
    deny = (
        "Object.defineProperty(window, 'sessionStorage', { get() { throw new DOMException('no', 'SecurityError'); } })"
    )
    await scene.page.add_init_script(deny)
    scene.replies["POST", "/api/conversations"] = (201, {"id": "c", "url": "/c/c"})
    scene.replies["POST", "/api/conversations/c/turns"] = (201, {"turn": scenes.turn("u", "Next", [Answer("c")])})
    if page_of == "new":
        await scene.open_new()
        scene.show(scenes.sync(scenes.turn("t", "First", [Answer("a")])))
    else:
        await finished(scene)
    await write(scene, "Next")
    await scene.page.keyboard.press("Enter")
    await expect_eventually(scene, lambda: any(path.endswith("/turns") for _, path, _ in scene.requests))
    # A new conversation's page opens then, and Chromium may never say that it closed one that was about to change.
    await scene.page.wait_for_selector("conversation-view[data-connection=live]")


async def test_a_refused_prompt_is_kept_and_the_reason_shown(scene: Scene) -> None:
    await finished(scene)
    scene.replies["POST", "/api/conversations/c/turns"] = (
        400,
        {"detail": "The prompt is too long.", "code": "prompt_too_long"},
    )
    await write(scene, "Much")
    await scene.page.keyboard.press("Enter")
    await expect(scene.page.locator(".composer__problem")).to_have_text("The prompt is too long.")
    await expect(prompt(scene)).to_have_value("Much")


async def test_trying_again_sends_the_same_key(scene: Scene) -> None:
    await finished(scene)
    scene.replies["POST", "/api/conversations/c/turns"] = (503, {"detail": "Not now."})
    await write(scene, "Next")
    await scene.page.keyboard.press("Enter")
    await expect(scene.page.locator(".composer__problem")).to_have_text("Not now.")
    await scene.page.keyboard.press("Enter")
    await expect_eventually(scene, lambda: len(scene.requests) == 2)
    assert scene.requests[0][2]["key"] == scene.requests[1][2]["key"]


async def test_a_draft_outlives_a_reload(scene: Scene) -> None:
    await finished(scene)
    await write(scene, "Half a thou")
    await scene.page.reload()
    await expect(prompt(scene)).to_have_value("Half a thou")


async def test_a_new_turn_waits_for_the_running_one_and_says_why(scene: Scene) -> None:
    await two_live(scene)
    await write(scene, "Next")
    await scene.page.keyboard.press("Enter")
    await expect(scene.page.locator(".composer__problem")).to_have_text("2 answers are still coming.")
    assert scene.requests == []


async def test_typing_keeps_the_focus_while_answers_stream_and_end(scene: Scene) -> None:
    careful, lively = await two_live(scene)
    await prompt(scene).focus()
    for _ in range(5):
        await scene.say(careful.text("words\n\n"), lively.text("words\n\n"))
        await scene.page.keyboard.type("x")
    await scene.say(careful.done(), lively.done())
    await expect(prompt(scene)).to_be_focused()
    await expect(prompt(scene)).to_have_value("xxxxx")


async def test_the_first_prompt_makes_the_conversation_and_goes_to_it(scene: Scene) -> None:
    scene.replies["POST", "/api/conversations"] = (201, {"id": "c", "url": "/c/c"})
    scene.replies["POST", "/api/conversations/c/turns"] = (201, {"turn": {}})
    await scene.open_new()
    scene.show(scenes.sync(scenes.turn("t", "First", [Answer("a"), Answer("b")])))
    await write(scene, "First")
    await scene.page.keyboard.press("Enter")
    await scene.page.wait_for_url("**/c/c")
    assert [pane["model"] for pane in scene.requests[1][2]["panes"]] == ["careful", "lively"]


async def test_answers_to_a_prompt_that_was_just_sent_are_no_restored_ones(scene: Scene) -> None:
    scene.replies["POST", "/api/conversations"] = (201, {"id": "c", "url": "/c/c"})
    scene.replies["POST", "/api/conversations/c/turns"] = (201, {"turn": {}})
    await scene.open_new()
    careful, lively = Answer("a"), Answer("b", "lively")
    careful.start(), careful.text("Because")
    scene.show(scenes.sync(scenes.turn("t", "First", [careful, lively])))
    await scene.page.add_init_script(KEEP_SPOKEN)
    await write(scene, "First")
    await scene.page.keyboard.press("Enter")
    await scene.page.wait_for_url("**/c/c")
    await expect_spoken(scene, "SmolLM2 careful is answering.")
    assert await scene.page.evaluate("window.spoken") == ["SmolLM2 careful is answering."]
    await scene.page.reload()
    await expect_spoken(scene, "Restored 2 answers, 2 still running.")


async def test_a_conversation_of_a_session_that_is_gone_is_made_anew(scene: Scene) -> None:
    """The first was made, its turn was not taken; then somebody signed out in another tab."""
    await scene.open_new()
    scene.replies["POST", "/api/conversations"] = (201, {"id": "lost", "url": "/c/lost"})
    scene.replies["POST", "/api/conversations/lost/turns"] = (503, {"detail": "Not now."})
    await write(scene, "First")
    await scene.page.keyboard.press("Enter")
    await expect(scene.page.locator(".composer__problem")).to_have_text("Not now.")
    scene.replies["POST", "/api/conversations/lost/turns"] = (404, {"detail": "Nothing.", "code": "not_found"})
    scene.replies["POST", "/api/conversations"] = (201, {"id": "c", "url": "/c/c"})
    scene.replies["POST", "/api/conversations/c/turns"] = (201, {"turn": {}})
    scene.show(scenes.sync(scenes.turn("t", "First", [Answer("a")])))
    await scene.page.keyboard.press("Enter")
    await scene.page.wait_for_url("**/c/c")
    keys = [body["key"] for _, path, body in scene.requests if path.endswith("/turns")]
    assert len(set(keys)) == 1


async def test_a_browser_that_refuses_the_cookie_is_told_why_nothing_can_be_asked(scene: Scene) -> None:
    await scene.open_new()
    scene.replies["POST", "/api/conversations"] = (201, {"id": "c", "url": "/c/c"})
    scene.replies["POST", "/api/conversations/c/turns"] = (404, {"detail": "Nothing.", "code": "not_found"})
    await write(scene, "First")
    await scene.page.keyboard.press("Enter")
    await expect(scene.page.locator(".composer__problem")).to_contain_text("The browser keeps no cookie of this site")
    await expect(prompt(scene)).to_have_value("First")


async def test_an_example_fills_the_prompt(scene: Scene) -> None:
    await scene.open_new()
    await scene.page.locator(".example").first.click()
    await expect(prompt(scene)).to_have_value(re.compile("tides"))


async def test_panes_can_be_added_up_to_eight(scene: Scene) -> None:
    await scene.open_new()
    for _ in range(6):
        await scene.page.get_by_role("button", name="Add model").click()
    await expect(scene.page.get_by_role("button", name="Add model")).to_be_disabled()
    await expect(scene.page.locator(".choice")).to_have_count(8)


async def test_the_last_pane_cannot_be_removed(scene: Scene) -> None:
    await scene.open_new()
    await scene.page.get_by_role("button", name="Remove pane 1").click()
    await expect(scene.page.get_by_role("button", name="Remove pane 1")).to_be_hidden()


async def test_a_model_that_cannot_be_used_shows_why(scene: Scene) -> None:
    await scene.open_new()
    option = scene.page.locator(".choice__model >> nth=0 >> option[value=gpt]")
    assert await option.inner_text() == "GPT (Set OPENAI_API_KEY to use this model.)"
    assert await option.is_disabled()


async def test_parameters_go_with_their_pane(scene: Scene) -> None:
    await finished(scene)
    await scene.page.locator(".choice summary").last.click()
    await scene.page.get_by_label("Max tokens").last.fill("64")
    await write(scene, "Next")
    scene.replies["POST", "/api/conversations/c/turns"] = (201, {"turn": scenes.turn("u", "Next", [])})
    await scene.page.keyboard.press("Enter")
    await expect_eventually(scene, lambda: len(scene.requests) == 1)
    assert [one["params"] for one in scene.requests[0][2]["panes"]] == [{"temperature": 0.5}, {"max_tokens": 64}]


# Stopping


async def test_stop_asks_for_its_own_generation_only(scene: Scene) -> None:
    await two_live(scene)
    scene.replies["POST", "/api/generations/a/cancel"] = (202, {"state": "running"})
    await scene.page.get_by_role("button", name="Stop SmolLM2 careful").click()
    await expect(scene.page.get_by_role("button", name="Stopping… SmolLM2 careful")).to_be_visible()
    await expect_eventually(scene, lambda: [path for _, path, _ in scene.requests] == ["/api/generations/a/cancel"])


async def test_a_stopped_pane_is_marked_and_the_other_goes_on(scene: Scene) -> None:
    careful, lively = await two_live(scene)
    await scene.say(careful.text("Half"), careful.cancelled(), lively.text("On and on"))
    await expect(scene.page.locator(f"{pane(scene, 1)} .notice")).to_contain_text("Stopped")
    assert [await text_of(scene, 1), await text_of(scene, 2)] == ["Half", "On and on"]


async def test_a_focused_stop_button_keeps_the_focus_when_the_answer_ends(scene: Scene) -> None:
    careful, _ = await two_live(scene)
    stop = scene.page.get_by_role("button", name="Stop SmolLM2 careful")
    await stop.focus()
    await scene.say(careful.done())
    await expect(stop).to_be_focused()
    await expect(stop).to_have_attribute("aria-disabled", "true")


async def test_stop_all_asks_once_for_all_and_goes_to_the_prompt(scene: Scene) -> None:
    careful, _ = await two_live(scene)
    scene.replies["POST", "/api/conversations/c/cancel"] = (202, {"generations": [{"id": "b", "state": "running"}]})
    await scene.say(careful.done())
    await scene.page.get_by_role("button", name="Stop all").click()
    await expect(prompt(scene)).to_be_focused()
    await expect_eventually(scene, lambda: [path for _, path, _ in scene.requests] == ["/api/conversations/c/cancel"])
    await expect(scene.page.get_by_role("button", name="Stopping… SmolLM2 lively")).to_be_visible()


async def test_a_stop_that_did_not_get_through_can_be_tried_again(scene: Scene) -> None:
    await two_live(scene)
    scene.replies["POST", "/api/generations/a/cancel"] = (503, {"detail": "The log cannot be reached."})
    await scene.page.get_by_role("button", name="Stop SmolLM2 careful").click()
    await expect(scene.page.locator(".composer__problem")).to_have_text("The log cannot be reached.")
    await expect(scene.page.get_by_role("button", name="Stop SmolLM2 careful")).to_have_attribute(
        "aria-disabled", "false"
    )


# The conversation


async def test_enter_renames_the_conversation_everywhere(scene: Scene) -> None:
    await finished(scene)
    scene.replies["PATCH", "/api/conversations/c"] = (200, {"id": "c", "title": "The sea"})
    await scene.page.get_by_role("button", name="Rename").click()
    await scene.page.get_by_label("Title").fill("The sea")
    await scene.page.keyboard.press("Enter")
    await expect(scene.page.get_by_role("heading", level=1)).to_have_text("The sea")
    await expect(scene.page.locator(".sidebar__link[aria-current]")).to_have_text("The sea")
    assert scene.requests == [("PATCH", "/api/conversations/c", {"title": "The sea"})]


async def test_cancelling_a_dialog_asks_for_nothing(scene: Scene) -> None:
    await finished(scene)
    await scene.page.get_by_role("button", name="Delete").click()
    await scene.page.get_by_role("button", name="Cancel").click()
    await expect(scene.page.get_by_role("dialog")).to_be_hidden()
    assert scene.requests == []


async def test_deleting_goes_to_a_new_conversation(scene: Scene) -> None:
    await finished(scene)
    scene.replies["DELETE", "/api/conversations/c"] = (204, None)
    scene.site.pages["/"] = "<!doctype html><title>New</title>"
    await scene.page.get_by_role("button", name="Delete").click()
    await scene.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await scene.page.wait_for_url("**/")
    assert scene.requests == [("DELETE", "/api/conversations/c", None)]
