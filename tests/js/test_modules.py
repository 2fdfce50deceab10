"""Runs the modules' own tests, tests/js/*.test.js, in a real browser, each case as a test here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.js.site import Site

HERE = Path(__file__).parent
CASES = [
    (file.name, name)
    for file in sorted(HERE.glob("*.test.js"))
    for name in re.findall(r'^test\(\s*"([^"]+)"', file.read_text("utf-8"), re.MULTILINE)
]


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def outcomes(browser: Browser, site: Site) -> dict[str, dict[str, str]]:
    """What every case of every file came to: nothing, or what went wrong."""
    page = await browser.new_page(base_url=site.address)
    found = {}
    for file in sorted({file for file, _ in CASES}):
        await page.goto("/unit")
        run = f"import('/tests/{file}').then(() => import('/tests/suite.js')).then((suite) => suite.runAll())"
        found[file] = await page.evaluate(run)
    await page.close()
    return found


@pytest.mark.parametrize(("file", "name"), CASES, ids=[f"{file}: {name}" for file, name in CASES])
def test_a_module(outcomes: dict[str, dict[str, str]], file: str, name: str) -> None:
    assert outcomes[file][name] == ""
