"""Real providers' recorded streams, through the whole product, as a person sees them."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from e2e.complaints import Complaints
from e2e.conftest import new_session
from e2e.product import Product, product, running
from e2e.verbs import Chat, Person
from tests.streaming.upstream.recorded import MISSING, SHARED

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(not SHARED.is_dir(), reason=MISSING),
]

SAMPLE = 40
PANES = 8


@dataclass(frozen=True)
class Replay:
    """A Sidestream whose models are recordings, and what each is expected to give, by model id."""

    product: Product
    expected: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def replay() -> Iterator[Replay]:
    with tempfile.TemporaryDirectory(prefix="e2e-") as path:
        folder = Path(path)
        models = folder / "models.toml"
        module = "tests.streaming.upstream.replay"
        command = [sys.executable, "-m", module, "--port", "0", "--sample", str(SAMPLE), "--catalogue", str(models)]
        with running(command, folder / "replay.log") as program:
            address = program.wait_for(r"recordings are ready at (\S+)$")
            with product(folder, address) as sidestream:
                yield Replay(sidestream, json.loads(models.with_name("models.toml.expected.json").read_text("utf-8")))


@pytest_asyncio.fixture(loop_scope="session")
async def reader(browser: Browser, replay: Replay, complaints: Complaints) -> AsyncIterator[Chat]:
    session = await new_session(browser, replay.product)
    page = await session.new_page()
    complaints.listen(page)
    yield Chat(page, Person(session.request))
    await session.close()


def eights(models: list[str]) -> Iterator[list[str]]:
    return (models[start : start + PANES] for start in range(0, len(models), PANES))


async def test_forty_recordings_are_shown_with_the_text_that_was_recorded(reader: Chat, replay: Replay) -> None:
    for models in eights(sorted(replay.expected)):
        await reader.open_asked("Play", *models)
        await reader.settled()
        answers = {answer["model"]: answer for answer in await reader.person.answers(reader.conversation)}
        for number, model in enumerate(models, start=1):
            expected = replay.expected[model]
            assert answers[model]["text"] == expected["text"], model
            assert answers[model]["reasoning"] == expected["reasoning"], model
            state = "failed" if expected["error"] else "completed"
            await reader.is_in(number, state)
            if expected["text"]:
                assert await reader.copied(number) == expected["text"], model
