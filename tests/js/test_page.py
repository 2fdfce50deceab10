"""The page as a person sees it, under the server's policy, with the server's part played by the test."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import Route, expect

from streaming.frames import RESYNC
from tests.js import scenes
from tests.js.scenes import Answer, Scene
from tests.js.verbs import expect_eventually, pane, text_of, two_live

pytestmark = pytest.mark.asyncio(loop_scope="session")


# Showing


async def test_panes_show_each_its_own_answer(scene: Scene) -> None:
    careful, lively = await two_live(scene)
    await scene.say(careful.text("Because of "), lively.text("Who knows"), careful.text("the Moon."))
    assert [await text_of(scene, 1), await text_of(scene, 2)] == ["Because of the Moon.", "Who knows"]


ARABIC = "كيف تعمل المد والجزر؟ (intro)"


@pytest.mark.parametrize("place", [".conversation__title", ".sidebar__link", ".turn__prompt", "#prompt"])
async def test_what_people_wrote_runs_in_its_own_direction(scene: Scene, place: str) -> None:
    document = scenes.sync(scenes.turn("t", ARABIC, [Answer("a")]))
    document["conversation"]["title"] = ARABIC
    listed = [{"id": "c", "title": ARABIC, "updated_at": "2026-01-02"}]
    await scene.open(document, conversations=listed)
    await scene.page.locator("#prompt").fill(ARABIC)
    directions = "element => element.matches(':dir(rtl)')"
    assert await scene.page.locator(place).first.evaluate(directions)
    assert await scene.page.locator("title").get_attribute("dir") == "auto"


async def test_a_restored_page_shows_what_it_had_without_a_request(scene: Scene) -> None:
    answer = Answer("a")
    answer.start(), answer.text("One\n\nTwo ha")
    await scene.open(scenes.sync(scenes.turn("t", "Count", [answer])))
    assert (await text_of(scene, 1)).split() == ["One", "Two", "ha"]
    assert scene.requests == []


async def test_a_restored_page_goes_on_from_its_cursor(scene: Scene) -> None:
    answer = Answer("a")
    answer.start(), answer.text("One, ")
    await scene.open(scenes.sync(scenes.turn("t", "Count", [answer]), cursor="77-3"))
    await scene.say(answer.text("two"))
    assert "cursor=77-3" in scene.sockets[0].url
    assert await text_of(scene, 1) == "One, two"


async def test_applied_frames_are_acknowledged(scene: Scene) -> None:
    careful, _ = await two_live(scene)
    await scene.say(careful.text("x"))
    await expect_eventually(scene, lambda: scene.acks[-1:] == ["3-0"])


async def test_markdown_comes_as_blocks_and_the_rest_as_text(scene: Scene) -> None:
    careful, _ = await two_live(scene)
    await scene.say(careful.text("# Title\n\n- a\n- b\n\nno *markup* yet"))
    answer = scene.page.locator(f"{pane(scene, 1)} answer-body")
    assert await answer.locator("h1").inner_text() == "Title"
    assert await answer.locator(".answer__tail").inner_text() == "no *markup* yet"


async def test_text_is_never_markup(scene: Scene) -> None:
    careful, _ = await two_live(scene)
    await scene.say(careful.text("<img src=x onerror=alert(1)><script>alert(2)</script>"))
    assert await scene.page.locator("answer-body :is(img, script)").count() == 0


async def test_html_enters_by_the_policy_only(scene: Scene, complaints: list[str]) -> None:
    await two_live(scene)
    refused = await scene.page.evaluate("try { document.body.innerHTML = '<b>x</b>'; false } catch (e) { e.name }")
    assert refused == "TypeError"
    await expect_eventually(scene, lambda: "TrustedHTML" in complaints.pop() if complaints else False)


async def test_reasoning_is_folded_until_it_is_opened(scene: Scene) -> None:
    careful, _ = await two_live(scene)
    await scene.say(careful.reasoning("Hmm, the Moon"))
    await expect(scene.page.locator(".reasoning__text").first).to_be_hidden()
    await scene.page.locator(".reasoning__summary").first.click()
    await expect(scene.page.locator(".reasoning__text").first).to_have_text("Hmm, the Moon")


async def test_a_failed_pane_says_so_and_keeps_its_text(scene: Scene) -> None:
    careful, lively = await two_live(scene)
    await scene.say(careful.text("Half an"), careful.failed("The service broke off. Try again."), lively.text("fine"))
    assert await text_of(scene, 1) == "Half an"
    await expect(scene.page.locator(f"{pane(scene, 1)} .notice")).to_contain_text("The service broke off. Try again.")
    await expect(scene.page.locator(f"{pane(scene, 2)} .notice")).to_be_hidden()


async def test_what_the_service_said_is_folded_and_can_be_unfolded_by_keyboard(scene: Scene) -> None:
    careful, lively = await two_live(scene)
    await scene.say(careful.failed("It did not accept top_p.", "<b>top_p</b>\nשלום"), lively.failed("No key."))
    words = scene.page.locator(f"{pane(scene, 1)} .said__text")
    await expect(words).to_be_hidden()
    await expect(scene.page.locator(f"{pane(scene, 2)} .said")).to_be_hidden()
    await scene.page.locator(f"{pane(scene, 1)} .said__summary").focus()
    await scene.page.keyboard.press("Enter")
    await expect(words).to_be_visible()
    assert await words.inner_text() == "<b>top_p</b>\nשלום"
    assert await words.get_attribute("dir") == "auto"


async def test_a_pane_whose_finish_is_unknown_does_not_just_say_done(scene: Scene) -> None:
    careful, lively = await two_live(scene)
    await scene.say(careful.text("Half of"), careful.done("unknown"), lively.text("All of it."), lively.done())
    await expect(scene.page.locator(pane(scene, 1))).to_contain_text("Done · finish not stated")
    await expect(scene.page.locator(pane(scene, 1))).to_contain_text("did not say why this answer ended")
    await expect(scene.page.locator(pane(scene, 2))).not_to_contain_text("not stated")


async def test_a_turn_from_another_tab_appears(scene: Scene) -> None:
    careful, lively = await two_live(scene)
    await scene.say(careful.done(), lively.done())
    await scene.say([{"v": 1, "type": "turn", "turn": scenes.turn("u", "And now?", [Answer("c"), Answer("d")])}])
    await expect(scene.page.locator("chat-turn")).to_have_count(2)
    await expect(scene.page.locator(".turn__prompt").last).to_have_text("And now?")


async def test_two_panes_of_one_model_have_different_names(scene: Scene) -> None:
    await scene.open(scenes.sync(scenes.turn("t", "Why?", [Answer("a"), Answer("b")])))
    names = await scene.page.locator(".pane").evaluate_all("panes => panes.map((one) => one.ariaLabel)")
    assert names == ["SmolLM2 careful (pane 1), answer", "SmolLM2 careful (pane 2), answer"]


async def test_nothing_moves_while_answers_begin_and_grow(scene: Scene) -> None:
    careful, lively = await two_live(scene)
    boxes = "[...document.querySelectorAll('.pane, .composer')].map((one) => one.getBoundingClientRect())"
    places = f"JSON.stringify({boxes})"
    before = await scene.page.evaluate(places)
    for _ in range(30):
        await scene.say(careful.text("Some more words.\n\n"), lively.text("- and\n- more\n\n"))
    await scene.say(careful.done(), lively.cancelled())
    assert await scene.page.evaluate(places) == before


# Connection


async def test_a_gap_fetches_sync_and_goes_on_from_its_cursor(scene: Scene) -> None:
    careful, lively = await two_live(scene)
    careful.text("This frame is lost. ")
    late = careful.text("This one is not.")
    document = scenes.sync(scenes.turn("t", "Why?", [careful, lively]), cursor="50-0")
    scene.replies["GET", "/api/conversations/c/sync"] = (200, document)
    await scene.say(late)
    await expect(scene.page.locator("answer-body").first).to_have_text("This frame is lost. This one is not.")
    await expect_eventually(scene, lambda: "cursor=50-0" in scene.sockets[-1].url)


async def test_a_sync_whose_reply_never_comes_is_given_up_and_asked_for_again(scene: Scene) -> None:
    await scene.page.clock.install()
    careful, lively = await two_live(scene)
    careful.text("It was here all the time.")
    document = scenes.sync(scenes.turn("t", "Why?", [careful, lively]), cursor="50-0")
    scene.replies["GET", "/api/conversations/c/sync"] = (200, document)
    lost: list[Route] = []

    def lose(route: Route) -> None:
        lost.append(route)

    await scene.page.route("**/sync", lose, times=1)
    await scene.send(RESYNC)
    await expect_eventually(scene, lambda: len(lost) == 1)
    await scene.page.clock.fast_forward(31_000)
    await expect(scene.page.locator("answer-body").first).to_have_text("It was here all the time.")
    await expect_eventually(scene, lambda: "cursor=50-0" in scene.sockets[-1].url)


async def test_a_resync_does_not_touch_blocks_that_stay(scene: Scene) -> None:
    careful, lively = await two_live(scene)
    await scene.say(careful.text("One\n\nTwo\n\n"))
    await scene.page.evaluate("window.kept = document.querySelector('answer-body p')")
    document = scenes.sync(scenes.turn("t", "Why?", [careful, lively]), cursor="50-0")
    scene.replies["GET", "/api/conversations/c/sync"] = (200, document)
    await scene.send(RESYNC)
    await expect_eventually(scene, lambda: len(scene.sockets) == 2)
    assert await scene.page.evaluate("document.querySelector('answer-body p') === window.kept")


async def test_server_sent_events_can_be_forced(scene: Scene) -> None:
    answer = Answer("a")
    frame = {"type": "events", "cursor": "2-0", "events": answer.start() + answer.text("Over SSE")}
    scene.replies["GET", "/api/conversations/c/events"] = (200, f"data: {json.dumps(frame)}\n\n")
    await scene.open(scenes.sync(scenes.turn("t", "Why?", [Answer("a")])), query="?transport=sse")
    await expect(scene.page.locator("answer-body")).to_have_text("Over SSE")
    assert scene.sockets == []


async def test_events_take_over_where_sockets_cannot_be_had(scene: Scene) -> None:
    answer = Answer("a")
    frame = {"type": "events", "cursor": "2-0", "events": answer.start() + answer.text("Over SSE")}
    scene.replies["GET", "/api/conversations/c/events"] = (200, f"data: {json.dumps(frame)}\n\n")
    await scene.open(scenes.sync(scenes.turn("t", "Why?", [Answer("a")])), sockets=False)
    await expect(scene.page.locator("answer-body")).to_have_text("Over SSE")


async def test_a_page_that_cannot_connect_says_so_quietly(scene: Scene) -> None:
    scene.replies["GET", "/api/conversations/c/sync"] = (503, {"detail": "Down."})
    scene.replies["GET", "/api/conversations/c/events"] = (503, {})
    await scene.open(scenes.sync(scenes.turn("t", "Why?", [Answer("a")])), sockets=False)
    await expect(scene.page.locator("connection-status")).to_contain_text("Offline.", timeout=15_000)


async def test_a_hidden_page_paints_once_when_it_is_seen_again(scene: Scene) -> None:
    careful, _ = await two_live(scene)
    await scene.page.evaluate(
        """() => {
          window.paints = 0;
          new MutationObserver(() => (window.paints += 1))
            .observe(document.querySelector("answer-body"), { childList: true, characterData: true, subtree: true });
          window.frames = window.requestAnimationFrame;
          window.requestAnimationFrame = () => 1;
          Object.defineProperty(document, "hidden", { configurable: true, value: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    for _ in range(20):
        scene.sockets[-1].send(json.dumps({"type": "events", "cursor": "9-0", "events": careful.text("word ")}))
    await expect_eventually(scene, lambda: scene.acks[-1:] == ["9-0"])
    assert await scene.page.evaluate("window.paints") == 0
    assert await scene.page.title() == "… How tides work · Sidestream"
    await scene.page.evaluate(
        """() => {
          window.requestAnimationFrame = window.frames;
          Object.defineProperty(document, "hidden", { configurable: true, value: false });
          document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    assert (await text_of(scene, 1)).split() == ["word"] * 20
    assert await scene.page.evaluate("window.paints") == 1
