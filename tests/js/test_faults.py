"""One pane that cannot be shown, or one frame that makes no sense: the others go on, and the server is asked."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from playwright.async_api import expect

from streaming.frames import events_frame, snapshot_frame
from streaming.snapshot import snapshot_to_dict
from tests.js import scenes
from tests.js.scenes import Answer, Scene
from tests.js.verbs import expect_eventually, expect_spoken, text_of, two_live

pytestmark = pytest.mark.asyncio(loop_scope="session")

# What goes wrong in the first pane, as a fault of the page's own code would.
BREAK = "void (document.querySelector('chat-pane').{} = () => {{ throw new Error('broken pane'); }})"
MEND = "delete document.querySelector('chat-pane').{}"
STEPS = ("measure", "paint", "park")


def syncs(scene: Scene) -> int:
    return sum(path.endswith("/sync") for _, path, _ in scene.requests)


def knows(scene: Scene, answers: Sequence[Answer]) -> None:
    """Let the server know what the answers hold by now."""
    document = scenes.sync(scenes.turn("t", "Why?", answers), cursor="50-0")
    scene.replies["GET", "/api/conversations/c/sync"] = (200, document)


async def both_say(scene: Scene, careful: Answer, lively: Answer) -> None:
    entries = careful.text("Lost. "), lively.text("Fine. ")
    knows(scene, [careful, lively])
    await scene.say(*entries)


async def came_back(scene: Scene, connections: int) -> None:
    await expect_eventually(scene, lambda: len(scene.sockets) == connections)
    await scene.page.wait_for_selector("conversation-view[data-connection=live]")


@pytest.mark.parametrize("step", STEPS)
async def test_a_pane_that_fails_leaves_the_others_alone_and_asks_once(
    scene: Scene, complaints: list[str], step: str
) -> None:
    careful, lively = await two_live(scene)
    await scene.page.evaluate(BREAK.format(step))
    await both_say(scene, careful, lively)
    assert (await text_of(scene, 2)).split() == ["Fine."]
    await came_back(scene, 2)
    for _ in range(5):
        await both_say(scene, careful, lively)
    assert (await text_of(scene, 2)).split() == ["Fine."] * 6
    assert syncs(scene) == 1
    assert complaints == ["broken pane"] * 2
    complaints.clear()


async def test_a_pane_that_fails_once_is_shown_whole_after_the_sync(scene: Scene, complaints: list[str]) -> None:
    careful, lively = await two_live(scene)
    await scene.page.evaluate(BREAK.format("paint"))
    entries = careful.text("Lost for a moment."), lively.text("Fine.")
    knows(scene, [careful, lively])
    await scene.say(*entries)
    await scene.page.evaluate(MEND.format("paint"))
    await expect(scene.page.locator("answer-body").first).to_have_text("Lost for a moment.")
    await expect(scene.page.locator(".composer__problem")).to_be_hidden()
    assert complaints == ["broken pane"]
    complaints.clear()


async def test_a_pane_that_cannot_be_shown_at_all_is_told_to_everybody(scene: Scene, complaints: list[str]) -> None:
    careful, lively = await two_live(scene)
    await scene.page.evaluate(BREAK.format("paint"))
    await both_say(scene, careful, lively)
    await expect(scene.page.locator(".composer__problem")).to_contain_text("Reload the page")
    await expect_spoken(scene, "Reload the page")
    assert complaints == ["broken pane"] * 2
    complaints.clear()


async def test_a_snapshot_of_an_answer_that_nobody_told_of_leads_to_one_sync_and_shows_it(scene: Scene) -> None:
    careful, lively = await two_live(scene)
    unknown = Answer("z", "demo")
    unknown.start(), unknown.text("Here I am.")
    careful.text("I go on.")
    first, second = (scenes.turn(one, "Why?", answers) for one, answers in (("t", [careful, lively]), ("u", [unknown])))
    document = scenes.sync(first, second, cursor="50-0")
    scene.replies["GET", "/api/conversations/c/sync"] = (200, document)
    await scene.send(snapshot_frame("40-0", [snapshot_to_dict(unknown.snapshot), snapshot_to_dict(careful.snapshot)]))
    await came_back(scene, 2)
    bodies = scene.page.locator("answer-body")
    await expect(bodies).to_have_text(["I go on.", "", "Here I am."])
    await scene.say(lively.text("I too."))
    await expect(bodies).to_have_text(["I go on.", "I too.", "Here I am."])
    assert syncs(scene) == 1


async def test_a_frame_that_makes_no_sense_leads_to_a_sync(scene: Scene, complaints: list[str]) -> None:
    careful, lively = await two_live(scene)
    careful.text("All is here.")
    knows(scene, [careful, lively])
    nonsense = json.dumps({"v": 1, "type": "turn", "turn": None})
    await scene.send(events_frame("40-0", [nonsense]))
    await expect(scene.page.locator("answer-body").first).to_have_text("All is here.")
    assert len(complaints) == 1
    assert "null" in complaints.pop()
