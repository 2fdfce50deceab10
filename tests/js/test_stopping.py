"""The Stop button: it says what is true, from the click on, and never says it twice."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, expect

from streaming.frames import RESYNC
from tests.js import scenes
from tests.js.scenes import Answer, Scene
from tests.js.verbs import expect_eventually, expect_spoken, pane, two_live

pytestmark = pytest.mark.asyncio(loop_scope="session")

STOP_A, STOP_ALL = "/api/generations/a/cancel", "/api/conversations/c/cancel"
# Keeps what an element is called, each time that changes.
WATCH_NAMES = """element => {
  window.names = [];
  new MutationObserver(() => window.names.at(-1) === element.ariaLabel || window.names.push(element.ariaLabel))
    .observe(element, { attributes: true, attributeFilter: ["aria-label"], childList: true });
}"""


def stop(scene: Scene, number: int = 1) -> Locator:
    return scene.page.locator(f"{pane(scene, number)} .pane__stop")


async def asked(scene: Scene, *paths: str) -> None:
    """Wait until just these requests were made."""
    await expect_eventually(scene, lambda: [path for _, path, _ in scene.requests] == list(paths))


async def test_a_stop_that_the_server_has_forgotten_can_be_asked_for_again(scene: Scene) -> None:
    careful, lively = await two_live(scene)
    scene.replies["POST", STOP_A] = (202, {"state": "running"})
    await stop(scene).click()
    await asked(scene, STOP_A)
    await expect(stop(scene)).to_have_text("Stopping…")
    document = scenes.sync(scenes.turn("t", "Why?", [careful, lively]), cursor="50-0")
    scene.replies["GET", "/api/conversations/c/sync"] = (200, document)
    await scene.send(RESYNC)
    await expect(stop(scene)).to_have_text("Stop")
    await expect(stop(scene)).to_have_attribute("aria-disabled", "false")
    await stop(scene).click()
    await asked(scene, STOP_A, "/api/conversations/c/sync", STOP_A)


async def test_the_button_is_called_one_thing_from_the_click_to_the_end(scene: Scene) -> None:
    careful, _ = await two_live(scene)
    scene.replies["POST", STOP_A] = (202, {"state": "running"})
    await stop(scene).evaluate(WATCH_NAMES)
    await stop(scene).click()
    await asked(scene, STOP_A)
    await expect(scene.page.locator(f"{pane(scene, 1)} .pane__state")).to_have_text("Stopping")
    await scene.say([{"v": 1, "type": "cancel", "gen": "a", "at": 1, "by": "user"}])
    await scene.say(careful.text("A last word."))
    assert await scene.page.evaluate("window.names") == ["Stopping… SmolLM2 careful"]
    await scene.say(careful.cancelled())
    await expect(scene.page.locator(f"{pane(scene, 1)} .pane__state")).to_have_text("Stopped")
    await expect(stop(scene)).to_be_focused()


async def test_a_stop_that_did_not_get_through_is_offered_again(scene: Scene) -> None:
    await two_live(scene)
    scene.replies["POST", STOP_A] = (503, {"detail": "The log cannot be reached. Try again."})
    await stop(scene).press("Enter")
    await expect_spoken(scene, "The log cannot be reached. Try again.")
    await expect(stop(scene)).to_have_text("Stop")
    await expect(stop(scene)).to_be_focused()
    await stop(scene).press("Enter")
    # The page sends it again by itself, too, so on a slow machine there may be more.
    await expect_eventually(scene, lambda: len(scene.requests) >= 2)
    assert {path for _, path, _ in scene.requests} == {STOP_A}


async def test_a_stop_while_the_server_is_away_is_kept_said_and_sent(scene: Scene) -> None:
    careful, lively = await two_live(scene)
    state = scene.page.locator(f"{pane(scene, 1)} .pane__state")
    await scene.page.route(f"**{STOP_A}", lambda route: route.abort())
    await stop(scene).click()
    await expect(state).to_have_text("Stops when connected")
    await expect_spoken(scene, "Your stop is kept, and is sent as soon as it can be.")
    await scene.page.unroute(f"**{STOP_A}")
    scene.replies["POST", STOP_A] = (202, {"state": "running"})
    document = scenes.sync(scenes.turn("t", "Why?", [careful, lively]), cursor="50-0")
    scene.replies["GET", "/api/conversations/c/sync"] = (200, document)
    await scene.sockets[-1].close()
    await expect(state).to_have_text("Stopping")
    await expect(scene.page.locator(".composer__problem")).to_be_hidden()


async def test_a_stop_that_is_kept_outlives_a_reload(scene: Scene) -> None:
    await two_live(scene)
    await scene.page.route(f"**{STOP_A}", lambda route: route.abort())
    await stop(scene).click()
    await expect(scene.page.locator(f"{pane(scene, 1)} .pane__state")).to_have_text("Stops when connected")
    await scene.page.unroute(f"**{STOP_A}")
    scene.replies["POST", STOP_A] = (202, {"state": "running"})
    await scene.page.reload()
    await expect_eventually(scene, lambda: ("POST", STOP_A, {"stop_keys": []}) in scene.requests)
    await expect(stop(scene)).to_have_text("Stopping…")


async def test_a_page_whose_session_is_gone_stops_with_the_keys_that_it_was_given(scene: Scene) -> None:
    answer = Answer("a")
    answer.start()
    turn = scenes.turn("t", "Why?", [answer])
    turn["generations"][0]["stop_key"] = "k1"
    await scene.open(scenes.sync(turn))
    await scene.page.wait_for_selector("conversation-view[data-connection=live]")
    scene.replies["GET", "/api/conversations/c/sync"] = (404, {"detail": "Nothing here.", "code": "not_found"})
    await scene.send(RESYNC)
    await expect(scene.page.locator("connection-status")).to_have_text(re.compile("Did you sign out"))
    scene.replies["POST", STOP_A] = (202, {"state": "running"})
    await stop(scene).click()
    state = scene.page.locator(f"{pane(scene, 1)} .pane__state")
    await expect(state).to_have_text("Stopping")
    scene.replies["POST", STOP_A] = (200, {"state": "cancelled"})
    await expect(state).to_have_text("Stopped")
    stops = [body for _, path, body in scene.requests if path == STOP_A]
    assert stops == [{"stop_keys": ["k1"]}] * 2


async def test_to_stop_all_is_shown_where_it_was_taken(scene: Scene) -> None:
    await two_live(scene)
    told = [{"id": "a", "state": "running"}, {"id": "b", "state": "completed"}]
    scene.replies["POST", STOP_ALL] = (202, {"generations": told})
    await scene.page.get_by_role("button", name="Stop all").click()
    await expect(stop(scene, 2)).to_have_text("Stop")
    await expect(stop(scene, 1)).to_have_text("Stopping…")


async def test_a_sync_that_brings_nothing_new_changes_nothing_on_the_page(scene: Scene) -> None:
    careful, lively = Answer("a"), Answer("b", "lively")
    careful.start(), careful.text("# One\n\n- two\n\n```python\nthree = 3\n"), careful.reasoning("Hm.")
    lively.start()
    panes = [{"id": one.snapshot.pane, "model": one.model, "params": {}} for one in (careful, lively)]
    document = scenes.sync(scenes.turn("t", "Why?", [careful, lively]), panes=panes)
    await scene.open(document)
    await scene.page.wait_for_selector("conversation-view[data-connection=live]")
    await scene.page.evaluate(
        """() => {
          window.changes = [];
          const note = ({ type, target, attributeName: name, oldValue }) => {
            if (type === "attributes" && target.getAttribute(name) === oldValue) return;
            if (target.closest?.("connection-status") || name === "data-connection") return;
            window.changes.push(`${type} ${name ?? ""} of ${target.nodeName}`);
          };
          const observer = new MutationObserver((records) => records.forEach(note));
          const attributes = { attributes: true, attributeOldValue: true };
          observer.observe(document.body, { ...attributes, childList: true, characterData: true, subtree: true });
          getSelection().selectAllChildren(document.querySelector(".turn__prompt"));
          document.querySelector(".pane__scroller").focus();
        }"""
    )
    await scene.send(RESYNC)
    await expect_eventually(scene, lambda: len(scene.sockets) == 2)
    await scene.page.wait_for_selector("conversation-view[data-connection=live]")
    assert await scene.page.evaluate("window.changes") == []
    assert await scene.page.evaluate("String(getSelection())") == "Why?"
    await expect(scene.page.locator(".pane__scroller").first).to_be_focused()
