"""Takes pictures of the page in its states: `python -m tests.js.shots FOLDER`. For the eye, not for a test."""

from __future__ import annotations

import asyncio
import sys
import tomllib
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from tests.js import scenes
from tests.js.site import ROOT, Site, serve

TIDES = """Tides are the slow rise and fall of the sea, twice a day on most coasts.

The **Moon** pulls on the water that faces it a little more than on the Earth as a whole, and least on the water
at the far side. So the sea bulges on both sides, and the Earth turns beneath the two bulges.

The Sun does the same, half as strongly. When both pull in one line, at new and full moon, tides are highest."""
SIZES = {"wide": (1280, 800), "narrow": (390, 844)}


def _demo() -> tuple[str, str]:
    steps = tomllib.loads((ROOT / "streaming/upstream/scripts/demo.toml").read_text("utf-8"))["step"]
    join = "".join
    return join(step.get("reasoning", "") for step in steps).strip(), join(step.get("text", "") for step in steps)


def _panes(answers: list[scenes.Answer]) -> list[dict[str, object]]:
    return [{"id": one.snapshot.pane, "model": one.model, "params": {}} for one in answers]


async def _empty(scene: scenes.Scene) -> None:
    await scene.open_new()


async def _streaming(scene: scenes.Scene) -> None:
    a, b = scenes.Answer("a", "careful"), scenes.Answer("b", "demo")
    asked = scenes.turn("t", "Explain how tides work, then show me what you can do.", [a, b])
    await scene.open(scenes.sync(asked, panes=_panes([a, b])))
    reasoning, text = _demo()
    await scene.say(a.start(), b.start(), b.reasoning(reasoning))
    for at in range(0, 1500, 60):
        await scene.say(b.text(text[at : at + 60]))
        if at < len(TIDES):
            await scene.say(a.text(TIDES[at : at + 60]))


async def _failed(scene: scenes.Scene) -> None:
    answers = [scenes.Answer("a", "careful"), scenes.Answer("b", "lively"), scenes.Answer("c", "demo")]
    a, b, c = answers
    await scene.open(scenes.sync(scenes.turn("t", "Why is the sky blue?", answers), panes=_panes(answers)))
    text = "Sunlight is scattered by the **air**, and blue light more than red.\n\nSo the sky "
    await scene.say(a.start(), b.start(), c.start(), a.text(text), b.text(text), c.text(text))
    await scene.say(
        a.failed(said="The engine is overloaded."), b.cancelled(), c.text("looks blue.\n"), c.done("length")
    )


async def _restored(scene: scenes.Scene) -> None:
    earlier = [scenes.Answer("x", "careful"), scenes.Answer("y", "lively")]
    for one in earlier:
        one.start(), one.text("The Moon pulls on the water.\n\n1. Near side\n2. Far side\n"), one.done()
    a, b = scenes.Answer("a", "careful"), scenes.Answer("b", "lively")
    _, text = _demo()
    a.start(), a.text(text), a.done()
    b.start(), b.text(text[:900])
    first = scenes.turn("s", "Explain how tides work.", earlier)
    second = scenes.turn("t", "And in more detail?\nWith a table.", [a, b])
    await scene.open(scenes.sync(first, second, panes=_panes([a, b])))


async def _eight(scene: scenes.Scene) -> None:
    answers = [scenes.Answer(f"g{n}", ("careful", "lively", "demo")[n % 3]) for n in range(8)]
    await scene.open(scenes.sync(scenes.turn("t", "Why is the sky blue?", answers), panes=_panes(answers)))
    await scene.say(*(one.start() for one in answers), *(one.text("Sunlight is scattered. " * 8) for one in answers))


STATES = {"empty": _empty, "streaming": _streaming, "failed": _failed, "restored": _restored, "eight": _eight}


async def _shoot(browser: Browser, site: Site, folder: Path, wanted: list[str]) -> None:
    for state in wanted or STATES:
        for name, (width, height) in SIZES.items():
            for scheme in ("light", "dark"):
                context = await browser.new_context(
                    base_url=site.address, viewport={"width": width, "height": height}, color_scheme=scheme
                )
                page = await context.new_page()
                page.on("pageerror", lambda error: print("page error:", error))
                page.on("console", lambda said: print("console:", said.text) if said.type == "error" else None)
                await STATES[state](scenes.Scene(page, site))
                await page.screenshot(path=folder / f"{state}-{name}-{scheme}.png")
                await context.close()


async def _main(folder: Path, wanted: list[str]) -> None:
    with serve() as site:
        async with async_playwright() as playwright:
            browser = await scenes.launch(playwright)
            await _shoot(browser, site, folder, wanted)
            await browser.close()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), sys.argv[2:]))
