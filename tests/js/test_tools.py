"""Tool calls in a pane: previews in the order in which they come, never a reason to stop."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.js.scenes import Scene
from tests.js.verbs import pane, text_of, two_live

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_fourth_call_that_comes_before_the_first_three_is_one_call_and_everything_streams_on(
    scene: Scene,
) -> None:
    careful, lively = await two_live(scene)
    await scene.say(careful.tool_piece("call-3", '{"city": ', "weather"), lively.text("I go on. "))
    calls = scene.page.locator(f"{pane(scene, 1)} .tool")
    await expect(calls).to_have_count(1)
    await scene.say(careful.text("Let me look. "), careful.tool_piece("call-3", '"Oslo"}'))
    for number in range(3):
        await scene.say(careful.tool_piece(f"call-{number}", f'{{"n": {number}}}', f"tool-{number}"))
    await expect(calls.locator(".tool__title")).to_have_text(
        [f"Tool call, still coming: {name}" for name in ("weather", "tool-0", "tool-1", "tool-2")]
    )
    await scene.say(careful.tool("call-3", "weather", '{"city": "Oslo"}'), lively.text("And on."))
    await expect(calls.first).to_have_text('Tool call: weather{"city": "Oslo"}')
    await expect(calls.locator("pre")).to_have_text(['{"city": "Oslo"}', '{"n": 0}', '{"n": 1}', '{"n": 2}'])
    assert [await text_of(scene, 1), await text_of(scene, 2)] == ["Let me look. ", "I go on. And on."]
    await scene.say(careful.done("tool_calls"))
    await expect(scene.page.locator(f"{pane(scene, 1)} .pane__state")).to_have_text("Asks for a tool")
