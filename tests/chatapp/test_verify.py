"""manage.py verify: every disagreement between rows and archived events in a line of its own."""

from __future__ import annotations

import asyncio
from io import StringIO
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command
from pytest_django import Settings

from chatapp.management.commands.verify import Command
from chatapp.models import Generation
from chatapp.store import DjangoStore
from chatapp.wiring import Worker, offer
from streaming.events import Cancelled, Start, TextDelta
from streaming.store import Outcome
from tests.chatapp.making import a_whole_answer, outcome_of
from tests.chatapp.people import Person

A_MODEL = """
[[models]]
id = "{0}"
label = "{0}"
adapter = "scripted"
model = "{0}@5000"
"""


def verify() -> tuple[int, str]:
    """Run the command; give its exit code and what it said."""
    said = StringIO()
    try:
        call_command("verify", stdout=said)
    except SystemExit as exc:
        return int(str(exc.code)), said.getvalue()
    return 0, said.getvalue()


async def two_ended(person: Person) -> list[str]:
    gens = [one["gen"] for one in (await person.ask(await person.begin(), "Hi", "echo", "warm"))["generations"]]
    cut = (Start("warm", "p", {"temperature": 1.5}), TextDelta("Goo"), Cancelled("user", "closed", 5, 3))
    await end_as(gens[0], a_whole_answer(gens[0]))
    await end_as(gens[1], outcome_of(gens[1], 1, *cut))
    return gens


async def end_as(gen: str, outcome: Outcome) -> None:
    store = DjangoStore(offer)
    assert await store.begin(gen, 1)
    assert await store.finish(gen, 1, outcome)


@pytest.mark.django_db(transaction=True)
async def test_verify_finds_nothing_where_all_agrees(guest: Person) -> None:
    await two_ended(guest)
    assert await sync_to_async(verify)() == (0, "2 ended answers looked at, 0 with faults\n")


@pytest.mark.django_db(transaction=True)
async def test_verify_says_each_disagreement_in_a_line_of_its_own(guest: Person) -> None:
    gens = await two_ended(guest)
    await Generation.objects.filter(pk=gens[1]).aupdate(state="completed", finish="stop")
    code, said = await sync_to_async(verify)()
    assert code == 1
    assert said.split("\n") == [
        f"generation {gens[1]}: its state is 'completed', and by its events 'cancelled'",
        f"generation {gens[1]}: its finish is 'stop', and by its events ''",
        "2 ended answers looked at, 1 with faults",
        "",
    ]


@pytest.mark.django_db(transaction=True)
async def test_verify_finds_nothing_in_what_real_drivers_wrote(
    guest: Person, worker: Worker, settings: Settings, tmp_path: Path
) -> None:
    scripts = ("echo", "tools", "error-midway", "cut-midway", "silent")
    settings.MODELS_FILE = tmp_path / "models.toml"
    settings.MODELS_FILE.write_text("".join(A_MODEL.format(script) for script in scripts), encoding="utf-8")
    turn = await guest.ask(await guest.begin(), "Say *this* again", *scripts)
    gens = [one["gen"] for one in turn["generations"]]
    assert (await guest.post(f"/api/generations/{gens[-1]}/cancel")).status_code in (200, 202)
    async with asyncio.timeout(30):
        await asyncio.gather(*map(worker.runtime.drive, gens))
    states = [row.state async for row in Generation.objects.order_by("number")]
    assert states == ["completed", "completed", "failed", "failed", "cancelled"]
    assert await sync_to_async(verify)() == (0, "5 ended answers looked at, 0 with faults\n")


def test_the_help_of_verify_names_what_it_compares() -> None:
    said = Command.help
    for word in ("state", "number of events", "text", "reasoning", "tool calls", "usage", "finish"):
        assert word in said
