"""The JSON API: parse, call one operation, answer."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import content_disposition_header

from chatapp import conversations, turns
from chatapp.admission import places
from chatapp.answers import Kind, Wish, add_answer, earlier_answer
from chatapp.asking import Added, Effective
from chatapp.cancellation import cancellation_of
from chatapp.database import in_database
from chatapp.dispatch import dispatcher
from chatapp.export import export as write_export
from chatapp.limits import CONVERSATIONS, PROMPTS
from chatapp.models import Conversation, Generation
from chatapp.models.conversation import epoch_ms
from chatapp.owners import NOBODY, Owner, owner_of, settle_guest
from chatapp.parsing import parse_key, parse_object, parse_stop_keys, parse_title, parse_turn
from chatapp.rows import merged, snapshot_of
from chatapp.sync import generation_document, sync_document, turn_document
from chatapp.wiring import offer, web
from streaming.errors import LogUnavailable
from streaming.events import Json, dumps
from streaming.lifecycle import TERMINAL, State, promise
from streaming.log.codec import turn_notice
from streaming.log.ports import Lease
from streaming.snapshot import Snapshot

logger = logging.getLogger(__name__)

# Other tabs learn of a turn from the log. The one that asked is not kept waiting for that.
ANNOUNCE_S = 2.0


async def viewer(request: HttpRequest) -> Owner:
    return await in_database(owner_of, request)


def answer(value: Json, status: int = 200) -> HttpResponse:
    """Give JSON that no cache keeps: it is one person's."""
    headers = {"Cache-Control": "no-store"}
    return HttpResponse(dumps(value), status=status, content_type="application/json", headers=headers)


async def renew_session(request: HttpRequest) -> HttpResponse:
    """Use the session, which renews it: a page that only listens to a WebSocket is told to ask for this."""
    await viewer(request)
    return HttpResponse(status=204, headers={"Cache-Control": "no-store"})


async def list_models(_request: HttpRequest) -> HttpResponse:
    return answer({"models": await web().models()})


async def create_conversation(request: HttpRequest) -> HttpResponse:
    data = parse_object(request.body)
    title = parse_title(data) if "title" in data else ""
    owner = await viewer(request)
    if owner == NOBODY:
        owner = settle_guest(request.session)
    await CONVERSATIONS.spend(web().redis, owner)
    made = await in_database(conversations.create_conversation, owner, title)
    return answer(_conversation(made), 201)


async def rename_conversation(request: HttpRequest, conversation: uuid.UUID) -> HttpResponse:
    title = parse_title(parse_object(request.body))
    renamed = await in_database(conversations.rename, await viewer(request), conversation, title)
    return answer(_conversation(renamed))


async def delete_conversation(request: HttpRequest, conversation: uuid.UUID) -> HttpResponse:
    """
    Delete all of it: the rows, then what the log holds. That fences the drivers, which close their upstreams.

    In this order nothing is taken over or written again: there is no row to do it for.
    """
    refs = await in_database(conversations.delete, await viewer(request), conversation)
    try:
        await web().log.remove(str(conversation), refs)
    except LogUnavailable as exc:
        # Drivers find the missing rows too, a little later.
        logger.warning("conversation %s: deleted, but its log is not: %s", conversation, exc)
    return HttpResponse(status=204)


async def sync(request: HttpRequest, conversation: uuid.UUID) -> HttpResponse:
    owner = await viewer(request)
    return answer(await sync_document(web().log, owner, conversation, web().lookout.see))


async def export(request: HttpRequest, conversation: uuid.UUID) -> HttpResponse:
    form, partial = request.GET.get("format", "json"), request.GET.get("partial") == "1"
    file = await in_database(write_export, await viewer(request), conversation, form, offer().label, partial=partial)
    disposition = content_disposition_header(as_attachment=True, filename=file.name)
    headers = {"Content-Disposition": disposition or "attachment", "Cache-Control": "no-store"}
    return HttpResponse(file.content, content_type=file.content_type, headers=headers)


async def add_turn(request: HttpRequest, conversation: uuid.UUID) -> HttpResponse:
    wanted = parse_turn(parse_object(request.body))
    told = await _ask(
        request,
        lambda owner: turns.earlier_turn(owner, conversation, wanted),
        lambda owner, effective: turns.add_turn(owner, conversation, wanted, effective),
    )
    return answer({"turn": told.turn}, 201 if told.is_new else 200)


async def retry(request: HttpRequest, gen: uuid.UUID) -> HttpResponse:
    return await _answer_again(request, Wish(Kind.RETRY, gen, parse_key(parse_object(request.body))))


async def go_on(request: HttpRequest, gen: uuid.UUID) -> HttpResponse:
    return await _answer_again(request, Wish(Kind.CONTINUE, gen, parse_key(parse_object(request.body))))


async def _answer_again(request: HttpRequest, wish: Wish) -> HttpResponse:
    told = await _ask(
        request,
        lambda owner: earlier_answer(owner, wish),
        lambda owner, effective: add_answer(owner, wish, effective),
    )
    return answer({"generation": told.turn["generations"][0]}, 201 if told.is_new else 200)


@dataclass(frozen=True, slots=True)
class _Told:
    """What a request added, as people are told of it."""

    conversation: str
    turn: dict[str, Any]
    is_new: bool


async def _ask(
    request: HttpRequest, earlier: Callable[[Owner], Added | None], add: Callable[[Owner, Effective], Added]
) -> _Told:
    """
    Store generations, tell other tabs, then the workers: a page hears of a turn before its first event.

    What the same request added earlier is only told again, and is not counted as a prompt.
    """
    owner, told = await in_database(_look_back, request, earlier)
    if told is None:
        await PROMPTS.spend(web().redis, owner)
        told = await in_database(lambda effective: _told(add(owner, effective)), offer().effective_params)
    if told.is_new:
        await _announce(told.conversation, told.turn)
        for generation in told.turn["generations"]:
            dispatcher.send(generation["gen"])
    return told


def _look_back(request: HttpRequest, earlier: Callable[[Owner], Added | None]) -> tuple[Owner, _Told | None]:
    owner = owner_of(request)
    added = earlier(owner)
    return owner, None if added is None else _told(added)


def _told(added: Added) -> _Told:
    return _Told(str(added.turn.conversation_id), turn_document(added), added.is_new)


async def cancel(request: HttpRequest, gen: uuid.UUID) -> HttpResponse:
    keys = parse_stop_keys(parse_object(request.body))
    owner = await viewer(request)
    ref = await in_database(conversations.stoppable, owner, gen, keys)
    state = await web().cancel(ref, owner.role)
    return answer({"state": state.value}, 200 if state in TERMINAL else 202)


async def cancel_all(request: HttpRequest, conversation: uuid.UUID) -> HttpResponse:
    """Ask everything that runs in a conversation to stop. 202 while any of it has not ended yet."""
    keys = parse_stop_keys(parse_object(request.body))
    owner = await viewer(request)
    refs = await in_database(conversations.all_stoppable, owner, conversation, keys)
    states = await asyncio.gather(*(web().cancel(ref, owner.role) for ref in refs))
    told = [{"id": ref.gen, "state": state.value} for ref, state in zip(refs, states, strict=True)]
    return answer({"generations": told}, 200 if TERMINAL.issuperset(states) else 202)


async def show_generation(request: HttpRequest, gen: uuid.UUID) -> HttpResponse:
    owner, log = await viewer(request), web().log
    row = await in_database(conversations.generation_of, owner, gen)
    logged = (await log.snapshot(row.ref.conversation, [row.ref])).generations.get(row.number) if row.is_live else None
    if row.is_live and row.attempt and logged is None:
        # It has ended meanwhile: its row tells it now.
        row = await in_database(conversations.generation_of, owner, gen)
    if not row.is_live:
        return answer(_generation(row, snapshot_of(row), None, None))
    (lease,) = await log.leases([row.ref])
    place = (await in_database(places)).get(row.ref.gen) if row.state == State.QUEUED else None
    return answer(_generation(row, merged(row, logged), lease, place))


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


def _generation(row: Generation, snapshot: Snapshot, lease: Lease | None, place: int | None) -> dict[str, Json]:
    unsettled = any(tool.outcome == "unknown" for tool in snapshot.tools)
    document = generation_document(row, snapshot, place)
    same = ("number", "continues", "place", "state", "model", "pane", "params", "finish", "usage", "timings", "error")
    return {
        "id": snapshot.gen,
        **{name: document[name] for name in same},
        "promise": promise(snapshot.state, unsettled_side_effect=unsettled),
        "text_length": len(snapshot.text),
        "cancel": snapshot.cancel,
        "cancellation": cancellation_of(snapshot, lease),
    }
