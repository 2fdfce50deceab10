"""Every recorded stream through the whole product: HTTP → worker → Redis and database → a reader and the API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_django import Settings

from chatapp.models import Generation
from chatapp.parsing import MAX_PANES
from chatapp.rows import snapshot_of
from chatapp.wiring import Worker
from streaming.snapshot import Snapshot
from tests.chatapp.listening import folded, over_ndjson, until_all_ended
from tests.chatapp.people import Person
from tests.streaming.upstream.recorded import MISSING, SHARED, Outcome, differences, expected
from tests.streaming.upstream.replay import Recording, all_recordings, catalogue, replaying

pytestmark = [
    pytest.mark.skipif(not SHARED.is_dir(), reason=MISSING),
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("site"),
]
PLAYED = all_recordings()
TURNS = [tuple(PLAYED[at : at + MAX_PANES]) for at in range(0, len(PLAYED), MAX_PANES)]


@pytest.fixture
async def offered(settings: Settings, tmp_path: Path) -> AsyncIterator[Callable[[tuple[Recording, ...]], None]]:
    """Serve all recordings, and offer those of a turn as models."""
    settings.MAX_RUNNING = settings.PROMPTS_PER_MINUTE = 0
    async with replaying(PLAYED) as address:

        def offer(turn: tuple[Recording, ...]) -> None:
            settings.MODELS_FILE = tmp_path / "models.toml"
            settings.MODELS_FILE.write_text(catalogue(turn, address))

        yield offer


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: f"{turn[0].case.id} and {len(turn) - 1} more")
async def test_recorded_streams_arrive_as_expected_everywhere(
    guest: Person, worker: Worker, offered: Callable[[tuple[Recording, ...]], None], turn: tuple[Recording, ...]
) -> None:
    offered(turn)
    path = await guest.begin()
    cursor = (await guest.sync(path))["cursor"]
    asked = await guest.ask(path, "Play it", *(recording.id for recording in turn))
    gens = [one["gen"] for one in asked["generations"]]
    async with over_ndjson(guest, path, cursor) as frames:
        await asyncio.gather(*map(worker.runtime.drive, gens))
        events = await until_all_ended(frames, len(gens))
    wrong = {}
    for gen, recording in zip(gens, turn, strict=True):
        heard = folded(gen, events)
        stored = snapshot_of(await Generation.objects.select_related("pane").aget(pk=gen))
        shown = (await guest.get(f"/api/generations/{gen}")).json()
        wrong[recording.case.id] = [
            *deviations(heard, recording),
            *(f"stored {name}" for name in ("text", "reasoning", "tools", "usage", "finish", "error")
              if getattr(stored, name) != getattr(heard, name)),
            *(f"shown {name}" for name in ("usage", "finish", "error") if shown[name] != getattr(heard, name)),
        ]  # fmt: skip
    assert {case: found for case, found in wrong.items() if found} == {}


def deviations(heard: Snapshot, recording: Recording) -> list[str]:
    """Name what differs from what is expected. Of an error the code is known here, not the service's own words."""
    want = expected(recording.case)
    got = Outcome(
        heard.text, heard.reasoning,
        [
            {"id": tool.call, "name": tool.name, "arguments": tool.arguments, "complete": tool.complete}
            for tool in heard.tools
        ],
        counted(heard), heard.finish, str(heard.error["code"]) if heard.error else None, json.dumps(want.error),
    )  # fmt: skip
    if heard.usage and heard.usage["source"] == "estimated":
        # What it should be is another test's; here it only has to stand where the service's own count is missing.
        said_all = want.usage is not None and {"input", "output"} <= want.usage.keys() and not want.error
        return [*differences(replace(got, usage=want.usage), want), *(["usage is estimated"] if said_all else [])]
    return differences(got, want)


def counted(heard: Snapshot) -> dict[str, int] | None:
    return {name: count for name, count in heard.usage.items() if name != "source"} if heard.usage else None
