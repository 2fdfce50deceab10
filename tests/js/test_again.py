"""Another answer of the same pane: asking for it, turning the pages, and what is shown of stopping and waiting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from playwright.async_api import expect

from streaming.snapshot import snapshot_to_dict
from tests.js import scenes
from tests.js.scenes import Answer, Scene
from tests.js.verbs import expect_eventually, expect_spoken, pane, text_of, two_live

pytestmark = pytest.mark.asyncio(loop_scope="session")

Json = Any


def document(answer: Answer, number: int = 1, continues: str | None = None, place: int | None = None) -> Json:
    return {**snapshot_to_dict(answer.snapshot), "number": number, "continues": continues, "place": place}


def stopped(gen: str = "a", text: str = "Once upon") -> Answer:
    answer = Answer(gen, "careful", "p1")
    answer.start(), answer.text(text), answer.cancelled()
    return answer


async def open_turn(scene: Scene, *generations: Json) -> None:
    turn = {**scenes.turn("t", "A story", []), "generations": list(generations)}
    await scene.open(scenes.sync(turn, panes=[{"id": "p1", "model": "careful", "params": {}}]))


async def a_stopped_answer(scene: Scene, text: str = "Once upon") -> Answer:
    """Open a conversation whose one answer was stopped; give the answer that the server would make next."""
    await open_turn(scene, document(stopped(text=text)))
    return Answer("b", "careful", "p1")


def button(scene: Scene, name: str) -> Any:
    return scene.page.get_by_role("button", name=name)


# Asking


@pytest.mark.parametrize(("name", "kind"), [("Retry", "retry"), ("Continue", "continue")])
async def test_another_answer_is_asked_for_once(scene: Scene, name: str, kind: str) -> None:
    new = await a_stopped_answer(scene)
    continues = "a" if kind == "continue" else None
    scene.replies["POST", f"/api/generations/a/{kind}"] = (201, {"generation": document(new, 2, continues)})
    await button(scene, f"{name} SmolLM2 careful").click()
    await expect(scene.page.locator(".pager")).to_contain_text("Answer 2 of 2")
    ((_, path, body),) = scene.requests
    assert (path, list(body)) == (f"/api/generations/a/{kind}", ["key"])


async def test_a_new_answer_takes_the_place_and_the_focus(scene: Scene) -> None:
    new = await a_stopped_answer(scene)
    scene.replies["POST", "/api/generations/a/retry"] = (201, {"generation": document(new, 2)})
    await button(scene, "Retry SmolLM2 careful").click()
    await expect(button(scene, "Stop SmolLM2 careful")).to_be_focused()
    await scene.say(new.start(), new.text("Another story"))
    assert await text_of(scene, 1) == "Another story"


async def test_another_tab_sees_the_new_answer(scene: Scene) -> None:
    new = await a_stopped_answer(scene)
    turn = {**scenes.turn("t", "A story", []), "generations": [document(new, 2)]}
    await scene.say([{"v": 1, "type": "turn", "turn": turn}], new.start(), new.text("Another story"))
    assert await text_of(scene, 1) == "Another story"
    await expect(scene.page.locator(".pane")).to_have_count(1)


async def test_a_request_that_did_not_get_through_is_repeated_with_its_key(scene: Scene) -> None:
    await a_stopped_answer(scene)
    scene.replies["POST", "/api/generations/a/retry"] = (429, {"detail": "At most 30 prompts a minute."})
    retry = button(scene, "Retry SmolLM2 careful")
    await retry.click()
    await expect(scene.page.locator(".composer__problem")).to_have_text("At most 30 prompts a minute.")
    await expect(retry).to_have_attribute("aria-disabled", "false")
    await retry.click()
    await expect_eventually(scene, lambda: len(scene.requests) == 2)
    assert scene.requests[0] == scene.requests[1]


async def test_without_text_there_is_nothing_to_continue(scene: Scene) -> None:
    answer = Answer("a", "careful", "p1")
    answer.start(), answer.failed()
    await open_turn(scene, document(answer))
    await expect(button(scene, "Retry SmolLM2 careful")).to_be_visible()
    await expect(button(scene, "Continue SmolLM2 careful")).to_be_hidden()


async def test_a_whole_answer_offers_no_other(scene: Scene) -> None:
    answer = Answer("a", "careful", "p1")
    answer.start(), answer.text("The end."), answer.done()
    await open_turn(scene, document(answer))
    await expect(button(scene, "Retry SmolLM2 careful")).to_be_hidden()


async def test_an_answer_of_an_earlier_turn_offers_no_other(scene: Scene) -> None:
    later = Answer("z", "careful", "p1")
    later.start(), later.text("x"), later.done()
    earlier = {**scenes.turn("t", "A story", []), "generations": [document(stopped())]}
    await scene.open(scenes.sync(earlier, {**scenes.turn("u", "More", []), "generations": [document(later, 2)]}))
    await expect(button(scene, "Retry SmolLM2 careful").first).to_be_hidden()


# Turning the pages


async def three_answers(scene: Scene) -> None:
    first, second, third = stopped("a", "One"), stopped("b", "Two"), stopped("c", "Three")
    await open_turn(scene, document(first, 1), document(second, 2), document(third, 3))


async def test_the_newest_answer_is_shown(scene: Scene) -> None:
    await three_answers(scene)
    assert await text_of(scene, 1) == "Three"
    await expect(scene.page.locator(".pager")).to_contain_text("Answer 3 of 3")


async def test_older_answers_are_turned_to_by_keyboard(scene: Scene) -> None:
    await three_answers(scene)
    await button(scene, "Older answer").focus()
    await scene.page.keyboard.press("Enter")
    await expect(scene.page.locator(".pager")).to_contain_text("Answer 2 of 3")
    await scene.page.keyboard.press("Enter")
    assert await text_of(scene, 1) == "One"
    await expect(button(scene, "Older answer")).to_be_disabled()
    await expect(button(scene, "Newer answer")).to_be_focused()
    await expect_spoken(scene, "Answer 1 of 3: Stopped.")


async def test_only_the_newest_answer_offers_another(scene: Scene) -> None:
    await three_answers(scene)
    await button(scene, "Older answer").click()
    await expect(button(scene, "Retry SmolLM2 careful")).to_be_hidden()


async def test_an_answer_that_comes_while_an_older_one_is_read_is_shown(scene: Scene) -> None:
    await three_answers(scene)
    await button(scene, "Older answer").click()
    new = Answer("d", "careful", "p1")
    turn = {**scenes.turn("t", "A story", []), "generations": [document(new, 4)]}
    await scene.say([{"v": 1, "type": "turn", "turn": turn}], new.start(), new.text("Four"))
    assert await text_of(scene, 1) == "Four"


async def test_an_answer_goes_on_while_an_older_one_is_read(scene: Scene) -> None:
    new = Answer("b", "careful", "p1")
    new.start(), new.text("Fo")
    await open_turn(scene, document(stopped(), 1), document(new, 2))
    await button(scene, "Older answer").click()
    await scene.say(new.text("ur"), new.done())
    assert await text_of(scene, 1) == "Once upon"
    await button(scene, "Newer answer").click()
    assert await text_of(scene, 1) == "Four"


async def test_panes_keep_their_order_when_one_is_answered_anew(scene: Scene) -> None:
    careful, lively = await two_live(scene)
    await scene.say(careful.text("Left"), careful.cancelled(), lively.text("Right"))
    new = Answer("n", "careful", careful.snapshot.pane)
    turn = {**scenes.turn("t", "Why?", []), "generations": [document(new, 3)]}
    await scene.say([{"v": 1, "type": "turn", "turn": turn}], new.start(), new.text("Left again"))
    assert [await text_of(scene, 1), await text_of(scene, 2)] == ["Left again", "Right"]


async def test_a_continuation_stands_below_what_it_continues(scene: Scene) -> None:
    rest = Answer("b", "careful", "p1")
    rest.start(), rest.text("a time")
    await open_turn(scene, document(stopped(), 1), document(rest, 2, continues="a"))
    await expect(scene.page.locator(".continued .answer")).to_have_text("Once upon")
    heads = scene.page.locator(".continued__head")
    await expect(heads).to_have_text(["Answer 1: Stopped", "Answer 2: goes on from here"])
    assert await scene.page.locator(f"{pane(scene, 1)} .continued + answer-body").inner_text() == "a time"


# Stopping and waiting


async def test_a_stop_that_another_tab_asked_for_is_shown(scene: Scene) -> None:
    await two_live(scene)
    await scene.say([{"v": 1, "type": "cancel", "gen": "a", "at": 1, "by": "user"}])
    await expect(button(scene, "Stopping… SmolLM2 careful")).to_be_visible()
    await expect(scene.page.locator(f"{pane(scene, 1)} .pane__state")).to_have_text("Stopping")
    await expect(button(scene, "Stop SmolLM2 lively")).to_be_visible()


async def test_a_restored_page_shows_that_an_answer_is_being_stopped(scene: Scene) -> None:
    answer = Answer("a", "careful", "p1")
    answer.start()
    answer.snapshot = replace(answer.snapshot, cancel_requested={"at": 1, "by": "user"})
    await open_turn(scene, document(answer))
    await expect(button(scene, "Stopping… SmolLM2 careful")).to_be_visible()


async def test_a_restored_page_shows_the_place_in_the_line(scene: Scene) -> None:
    await open_turn(scene, document(Answer("a", "careful", "p1"), place=3))
    await expect(scene.page.locator(".pane__state")).to_have_text("Queued, 3rd in line")


async def test_a_place_is_asked_for_again_while_something_waits(scene: Scene) -> None:
    await open_turn(scene, document(Answer("a", "careful", "p1"), place=3))
    scene.replies["GET", "/api/generations/a"] = (200, {"id": "a", "place": 1})
    await expect(scene.page.locator(".pane__state")).to_have_text("Queued, next in line")


# Export


async def test_the_menu_exports_what_was_chosen(scene: Scene) -> None:
    await a_stopped_answer(scene)
    await button(scene, "Export").click()
    dialog = scene.page.get_by_role("dialog", name="Export the conversation")
    await dialog.get_by_label("Format").select_option("json")
    await dialog.get_by_label("Also answers that are not whole").check()
    # A page that is closed while it navigates may never be closed, so the export is a download here as well.
    saved = {"Content-Disposition": "attachment; filename=story.json"}
    await scene.page.route("**/export?**", lambda route: route.fulfill(headers=saved, body="{}"))
    async with scene.page.expect_download() as download:
        await dialog.get_by_role("button", name="Export").click()
    asked = await download.value
    assert asked.url.endswith("/api/conversations/c/export?format=json&partial=1")
    assert (await asked.path()).read_text() == "{}"
