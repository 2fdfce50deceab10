"""The JSON API: parse, call one operation, answer."""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from chatapp import conversations
from chatapp.database import in_database
from chatapp.dispatch import dispatcher
from chatapp.models import Conversation
from chatapp.models.conversation import epoch_ms
from chatapp.owners import NOBODY, Owner, owner_of, settle_guest
from chatapp.parsing import parse_object, parse_title, parse_turn
from chatapp.rows import merged, snapshot_of
from chatapp.sync import sync_document, turn_document
from chatapp.wiring import offer, web
from streaming.errors import LogUnavailable
from streaming.events import Json, dumps
from streaming.lifecycle import TERMINAL, promise
from streaming.log.codec import turn_notice
from streaming.snapshot import Snapshot

logger = logging.getLogger(__name__)

# Other tabs learn of a turn from the log. The one that asked is not kept waiting for that.
ANNOUNCE_S = 2.0
BY_USER = "user"


async def viewer(request: HttpRequest) -> Owner:
    return await in_database(owner_of, request)


def answer(value: Json, status: int = 200) -> HttpResponse:
    """Give JSON that no cache keeps: it is one person's."""
    headers = {"Cache-Control": "no-store"}
    return HttpResponse(dumps(value), status=status, content_type="application/json", headers=headers)


async def list_models(_request: HttpRequest) -> HttpResponse:
    return answer({"models": offer().public()})


async def create_conversation(request: HttpRequest) -> HttpResponse:
    data = parse_object(request.body)
    title = parse_title(data) if "title" in data else ""
    owner = await viewer(request)
    if owner == NOBODY:
        owner = settle_guest(request.session)
    made = await in_database(conversations.create_conversation, owner, title)
    return answer(_conversation(made), 201)


async def rename_conversation(request: HttpRequest, conversation: uuid.UUID) -> HttpResponse:
    title = parse_title(parse_object(request.body))
    renamed = await in_database(conversations.rename, await viewer(request), conversation, title)
    return answer(_conversation(renamed))


async def delete_conversation(request: HttpRequest, conversation: uuid.UUID) -> HttpResponse:
    """Ask what still runs to stop, then delete all of it. A driver that finds its row gone stops too."""
    owner = await viewer(request)
    for ref in await in_database(conversations.live_refs, owner, conversation):
        try:
            await web().cancel(ref, BY_USER)
        except LogUnavailable as exc:
            logger.warning("generation %s: deleted, but not asked to stop: %s", ref.gen, exc)
    await in_database(conversations.delete, owner, conversation)
    return HttpResponse(status=204)


async def sync(request: HttpRequest, conversation: uuid.UUID) -> HttpResponse:
    return answer(await sync_document(web().log, await viewer(request), conversation))


async def add_turn(request: HttpRequest, conversation: uuid.UUID) -> HttpResponse:
    """Store a turn, tell other tabs, then the workers: a page hears of a turn before its first event."""
    wanted = parse_turn(parse_object(request.body))
    owner = await viewer(request)
    added = await in_database(conversations.add_turn, owner, conversation, wanted, offer().effective_params)
    turn = await in_database(turn_document, owner, conversation, added.turn)
    if added.is_new:
        await _announce(str(conversation), turn)
        for gen in added.generations:
            dispatcher.send(gen)
    return answer({"turn": turn}, 201 if added.is_new else 200)


async def cancel(request: HttpRequest, gen: uuid.UUID) -> HttpResponse:
    row = await in_database(conversations.generation_of, await viewer(request), gen)
    state = await web().cancel(row.ref, BY_USER)
    return answer({"state": state.value}, 200 if state in TERMINAL else 202)


async def show_generation(request: HttpRequest, gen: uuid.UUID) -> HttpResponse:
    row = await in_database(conversations.generation_of, await viewer(request), gen)
    snapshot = snapshot_of(row)
    if row.is_live:
        logged = (await web().log.snapshot(row.ref.conversation, [row.ref])).generations
        snapshot = merged(row, logged.get(row.number))
    return answer(_generation(snapshot))


async def _announce(conversation: str, turn: dict[str, Json]) -> None:
    try:
        async with asyncio.timeout(ANNOUNCE_S):
            await web().log.announce(conversation, turn_notice(turn))
    except (LogUnavailable, TimeoutError) as exc:
        # Other tabs meet the unknown generation in the log later, and sync.
        logger.warning("conversation %s: its new turn was not announced: %s", conversation, exc)


def _conversation(conversation: Conversation) -> dict[str, Any]:
    return {
        **conversation.to_dict(),
        "updated_at": epoch_ms(conversation.updated_at),
        "url": reverse("conversation", args=[conversation.pk]),
    }


def _generation(snapshot: Snapshot) -> dict[str, Json]:
    unsettled = any(tool.outcome == "unknown" for tool in snapshot.tools)
    return {
        "id": snapshot.gen,
        "state": snapshot.state.value,
        "promise": promise(snapshot.state, unsettled_side_effect=unsettled),
        "model": snapshot.model,
        "pane": snapshot.pane,
        "params": dict(snapshot.params),
        "text_length": len(snapshot.text),
        "finish": snapshot.finish,
        "usage": snapshot.usage,
        "timings": dict(snapshot.timings),
        "error": snapshot.error,
        "cancel": snapshot.cancel,
    }
