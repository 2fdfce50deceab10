"""Takes pictures of the running product in its main states: `python -m e2e.shots FOLDER`. For the eye, no test."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from e2e.browser import chromium_arguments, chromium_path
from e2e.catalogue import CAREFUL, LIVELY, write_catalogue, write_scripts
from e2e.product import Product, closed_port, product, scripted_service
from e2e.tap import Tap
from e2e.verbs import Chat, Person

SIZES = {"wide": (1280, 800), "narrow": (390, 844)}


async def _empty(chat: Chat) -> None:
    await chat.page.goto("/")


async def _streaming(chat: Chat) -> None:
    await chat.ask("Explain how tides work, then show me what you can do.", CAREFUL, LIVELY, "demo")
    await chat.shows(3, "What travels")


async def _failed(chat: Chat) -> None:
    await chat.ask("Why is the sky blue?", "error-midway", "refuse-401", "long")
    await chat.begun(3)
    await chat.stop(3)
    await chat.settled()


async def _restored(chat: Chat) -> None:
    await chat.ask("Explain how tides work.", CAREFUL, LIVELY)
    await chat.settled()
    await chat.choose("demo", "echo")
    await chat.send("Show me a table, and some code.")
    await chat.is_in(1, "running")
    await chat.settled()
    await chat.page.reload()
    await chat.begun(1, 2)


async def _eight(chat: Chat) -> None:
    await chat.ask("Count with me.", *["demo", "long"] * 4)
    await chat.begun(*range(1, 9))


STATES: dict[str, Callable[[Chat], Awaitable[None]]] = {
    "empty": _empty, "streaming": _streaming, "failed": _failed, "restored": _restored, "eight": _eight,
}  # fmt: skip


async def _shoot(browser: Browser, sidestream: Product, folder: Path) -> None:
    for state, reach in STATES.items():
        for name, (width, height) in SIZES.items():
            context = await browser.new_context(base_url=sidestream.url, viewport={"width": 1280, "height": height})
            chat = Chat(await context.new_page(), Person(context.request))
            await reach(chat)
            await chat.page.set_viewport_size({"width": width, "height": height})
            for scheme in ("light", "dark"):
                await chat.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
                await chat.page.screenshot(path=folder / f"{state}-{name}-{scheme}.png")
            await chat.person.leave()
            await context.close()


async def _main(folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="e2e-") as path:
        place = Path(path)
        write_scripts(place / "scripts")
        with scripted_service(place) as scripted:
            refused = f"http://127.0.0.1:{closed_port()}"
            write_catalogue(place / "models.toml", scripted=scripted, tap=Tap().address or refused, refused=refused)
            with product(place, scripted) as sidestream:
                async with async_playwright() as playwright:
                    executable = chromium_path(playwright)  # type: ignore[arg-type]  # It asks for a path only.
                    browser = await playwright.chromium.launch(executable_path=executable, args=chromium_arguments())
                    await _shoot(browser, sidestream, folder)
                    await browser.close()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
