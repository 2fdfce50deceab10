"""Reading answers while they grow: scrolling, copying, narrow pages and screen readers."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.js.scenes import Scene
from tests.js.verbs import expect_spoken, is_at_end, pane, two_live, until

pytestmark = pytest.mark.asyncio(loop_scope="session")


# Reading


async def test_a_reader_who_scrolls_up_is_left_alone_while_others_follow(scene: Scene) -> None:
    careful, lively = await two_live(scene)
    await scene.say(careful.text("Line\n\n" * 60), lively.text("Line\n\n" * 60))
    scroller = scene.page.locator(f"{pane(scene, 1)} .pane__scroller")
    await scroller.hover()
    await scene.page.mouse.wheel(0, -50)
    await expect(scene.page.locator(f"{pane(scene, 1)} .pane__jump")).to_be_visible()
    # The browser scrolls smoothly: the wheel's way is over when all of it has been gone.
    await until(scroller, "e => e.scrollHeight - e.clientHeight - e.scrollTop >= 49")
    top = await scroller.evaluate("element => element.scrollTop")
    for _ in range(10):
        await scene.say(careful.text("More\n\n"), lively.text("More\n\n"))
    assert await scroller.evaluate("element => element.scrollTop") == top
    assert await is_at_end(scene, 2)


async def test_jump_to_latest_follows_again(scene: Scene) -> None:
    careful, _ = await two_live(scene)
    await scene.say(careful.text("Line\n\n" * 60))
    scroller = scene.page.locator(f"{pane(scene, 1)} .pane__scroller")
    await scroller.evaluate("element => { element.scrollTop = 0; }")
    await scene.page.locator(f"{pane(scene, 1)} .pane__jump").click()
    await scene.say(careful.text("More\n\n" * 5))
    assert await is_at_end(scene, 1)


async def test_opening_the_reasoning_keeps_it_under_the_pointer(scene: Scene) -> None:
    careful, _ = await two_live(scene)
    await scene.say(careful.reasoning("Hmm. " * 800), careful.text("Line\n\n" * 3))
    summary = scene.page.locator(".reasoning__summary").first
    before = await summary.bounding_box()
    await summary.click()
    await scene.say(careful.text("More\n\n"))
    assert await summary.bounding_box() == before


async def test_an_answer_can_be_copied_as_it_was_written(scene: Scene) -> None:
    careful, _ = await two_live(scene)
    await scene.say(careful.text("# Title\n\nand *more*"))
    await scene.page.get_by_role("button", name="Copy the answer of SmolLM2 careful").click()
    await expect_spoken(scene, "Copied.")
    assert await scene.page.evaluate("navigator.clipboard.readText()") == "# Title\n\nand *more*"


async def test_code_is_copied_without_the_line_end_that_would_run_it(scene: Scene) -> None:
    careful, _ = await two_live(scene)
    await scene.say(careful.text("```sh\nrm -r build\n```\n"))
    await scene.page.get_by_role("button", name="Copy code").click()
    await expect_spoken(scene, "Copied.")
    assert await scene.page.evaluate("navigator.clipboard.readText()") == "rm -r build"


async def test_a_narrow_page_shows_one_pane_and_scrolls_one_way(scene: Scene) -> None:
    await scene.page.set_viewport_size({"width": 390, "height": 844})
    careful, lively = await two_live(scene)
    await scene.say(careful.text("First " * 50), lively.text("Second `" + "x" * 300))
    await expect(scene.page.locator(pane(scene, 2))).to_be_hidden()
    await scene.page.get_by_role("button", name="Pane 2: SmolLM2 lively, Writing").click()
    await expect(scene.page.locator(pane(scene, 2))).to_be_visible()
    assert await scene.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await scene.page.locator(f"{pane(scene, 2)} .pane__scroller").evaluate("e => e.scrollWidth <= e.clientWidth")


# Screen readers


async def test_status_is_spoken_and_answers_are_not(scene: Scene) -> None:
    careful, _ = await two_live(scene)
    await scene.say(careful.text("A secret answer"))
    await expect_spoken(scene, "SmolLM2 careful is answering.")
    assert "secret" not in await scene.page.locator("live-announcer").inner_text()


async def test_a_failure_is_an_alert(scene: Scene) -> None:
    careful, _ = await two_live(scene)
    await scene.say(careful.failed("No key."))
    await expect(scene.page.locator("live-announcer [role=alert]")).to_contain_text("SmolLM2 careful failed. No key.")


async def test_nothing_in_the_transcript_is_a_live_region(scene: Scene) -> None:
    careful, _ = await two_live(scene)
    await scene.say(careful.text("Text"))
    regions = "main :is([aria-live], [role=log], [role=status], [role=alert], [aria-busy])"
    assert await scene.page.locator(regions).count() == 0
