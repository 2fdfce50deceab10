"""What the tests of the page do and see, in words."""

from __future__ import annotations

from collections.abc import Callable

from playwright.async_api import Locator, expect

from tests.js import scenes
from tests.js.scenes import Answer, Scene

# What a finished conversation's next turn would use.
PANES = [
    {"id": "p1", "model": "careful", "params": {"temperature": 0.5}},
    {"id": "p2", "model": "lively", "params": {}},
]


async def two_live(scene: Scene, query: str = "") -> tuple[Answer, Answer]:
    """Open a conversation whose two panes have begun to answer."""
    careful, lively = Answer("a", "careful"), Answer("b", "lively")
    panes = [{"id": one.snapshot.pane, "model": one.model, "params": {}} for one in (careful, lively)]
    await scene.open(scenes.sync(scenes.turn("t", "Why?", [careful, lively]), panes=panes), query=query)
    await scene.say(careful.start(), lively.start())
    return careful, lively


def pane(scene: Scene, number: int) -> str:
    return f".pane:nth-of-type({number})"


async def text_of(scene: Scene, number: int) -> str:
    return await scene.page.locator(f"{pane(scene, number)} answer-body").inner_text()


async def finished(scene: Scene) -> None:
    """Open a conversation whose answers have ended."""
    answers = [Answer("a"), Answer("b", "lively")]
    for answer in answers:
        answer.start(), answer.text("Done."), answer.done()
    await scene.open(scenes.sync(scenes.turn("t", "Why?", answers), panes=PANES))


def prompt(scene: Scene) -> Locator:
    return scene.page.get_by_label("Prompt", exact=True)


async def write(scene: Scene, text: str) -> None:
    await prompt(scene).fill(text)


async def is_at_end(scene: Scene, number: int) -> bool:
    scroller = scene.page.locator(f"{pane(scene, number)} .pane__scroller")
    return bool(await scroller.evaluate("e => e.scrollHeight - e.clientHeight - e.scrollTop <= 2"))


async def expect_spoken(scene: Scene, text: str) -> None:
    await expect(scene.page.locator("live-announcer [role=status]")).to_contain_text(text)


async def expect_eventually(scene: Scene, holds: Callable[[], bool]) -> None:
    """Wait until what the test's side of the network saw is as expected."""
    for _ in range(200):
        if holds():
            return
        await scene.page.evaluate("new Promise((done) => setTimeout(done, 10))")
    raise AssertionError(f"requests {scene.requests}, acks {scene.acks}")


async def until(element: Locator, holds: str) -> None:
    """Wait until a function of the element gives true. Playwright's own waiting needs eval: the policy forbids it."""
    for _ in range(200):
        if await element.evaluate(holds):
            return
        await element.page.evaluate("new Promise((done) => setTimeout(done, 10))")
    raise AssertionError(holds)
