"""One site for all scenarios, and a figure book that is printed at the end."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from tests.torture.site import Site, running_site
from tests.torture.stage import Stage, staged

_FIGURES: list[str] = []
_NUMBERS = itertools.count()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def site() -> AsyncIterator[Site]:
    async with running_site() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def stage(site: Site) -> AsyncIterator[Stage]:
    """Give a stage of the test's own on the common site, healed."""
    await site.heal()
    async with staged(site, f"d{next(_NUMBERS)}") as one:
        yield one


@pytest.fixture(scope="session")
def at_length() -> bool:
    """Say whether figures are wanted as issue 3 names them, for which CI has no time: TORTURE_FULL=1."""
    return bool(os.environ.get("TORTURE_FULL"))


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Note a measured figure; all are printed after the suite, since a passed test shows nothing."""
    return lambda text: _FIGURES.append(f"{request.node.name.removeprefix('test_').replace('_', ' ')}: {text}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _FIGURES:
        terminalreporter.section("torture: measured")
        for line in _FIGURES:
            terminalreporter.write_line(line)
