"""A refusal through the whole product: our sentence names the parameter, and the service's words are kept beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pytest_django import Settings

from chatapp.models import EventArchive, Generation
from chatapp.wiring import Worker
from tests.chatapp.listening import folded, over_ndjson, until_all_ended
from tests.chatapp.people import Person
from tests.streaming.upstream.server import answers, serving

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]

WORDS = "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) is supported."
BODY = {
    "error": {"message": WORDS, "type": "invalid_request_error", "param": "temperature", "code": "unsupported_value"}
}


async def test_a_refusal_reaches_the_person_with_the_parameter_and_the_service_s_words(
    guest: Person, worker: Worker, settings: Settings, tmp_path: Path
) -> None:
    refuses = answers("400 Bad Request", json.dumps(BODY).encode(), Content_Type="application/json")
    async with serving(refuses) as service:
        settings.MODELS_FILE = tmp_path / "models.toml"
        settings.MODELS_FILE.write_text(
            '[[models]]\nid = "gpt"\nlabel = "GPT"\nadapter = "openai_chat"\nmodel = "gpt"\n'
            f'address = "{service.url}"\n'
        )
        path = await guest.begin()
        cursor = (await guest.sync(path))["cursor"]
        gen = (await guest.ask(path, "Hi", "gpt"))["generations"][0]["gen"]
        async with over_ndjson(guest, path, cursor) as frames:
            await worker.runtime.drive(gen)
            heard = folded(gen, await until_all_ended(frames, 1)).error
    assert heard is not None
    assert heard["message"].startswith("The model service did not accept temperature.")
    assert (heard["code"], heard["said"]) == ("bad_request", WORDS)
    row = await Generation.objects.aget(pk=gen)
    synced = (await guest.sync(path))["turns"][0]["generations"][0]
    shown = (await guest.get(f"/api/generations/{gen}")).json()
    assert [row.error, synced["error"], shown["error"]] == [heard] * 3
    assert WORDS in (await EventArchive.objects.aget(pk=gen)).events()
