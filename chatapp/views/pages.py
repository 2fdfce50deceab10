"""The pages. Each embeds what its scripts need, so that the first paint needs no second request."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from chatapp.conversations import conversations_of
from chatapp.database import in_database
from chatapp.errors import Problem
from chatapp.models import Conversation
from chatapp.owners import Owner, owner_of
from chatapp.sync import sync_document
from chatapp.wiring import web


@require_safe
async def index(request: HttpRequest) -> HttpResponse:
    owner = await in_database(owner_of, request)
    return await _page(request, "chatapp/index.html", owner, {"urls": _urls()})


@require_safe
async def conversation(request: HttpRequest, conversation: uuid.UUID) -> HttpResponse:
    owner = await in_database(owner_of, request)
    try:
        sync = await sync_document(web().log, owner, conversation, web().lookout.see)
    except Problem as exc:
        raise Http404(exc.detail) from exc
    context = {"conversation": sync["conversation"], "sync": sync, "urls": _urls(conversation)}
    return await _page(request, "chatapp/conversation.html", owner, context)


async def _page(request: HttpRequest, template: str, owner: Owner, context: dict[str, Any]) -> HttpResponse:
    listed = await in_database(conversations_of, owner)
    common = {"conversations": [_listed(one) for one in listed], "models": await web().models()}
    # Templates read the user, and so the database.
    response = await in_database(render, request, template, {**common, **context})
    response["Cache-Control"] = "no-store"
    return response


def _listed(one: Conversation) -> dict[str, Any]:
    return {"id": str(one.pk), "title": one.title, "updated_at": one.updated_at}


def _urls(conversation: uuid.UUID | None = None) -> dict[str, str]:
    """Give the addresses that scripts use; `{conversation}` and `{gen}` stand for ids they learn later."""
    urls = {"home": reverse("index"), "conversations": reverse("conversations"), "models": reverse("models")}
    if conversation is None:
        return {**urls, "turns": _pattern("turns", "{conversation}")}
    own = {name: reverse(name, args=[conversation]) for name in ("sync", "events", "turns", "export")}
    return {
        **urls,
        **own,
        **{name: _pattern(name, "{gen}") for name in ("generation", "cancel", "retry", "continue")},
        "cancelAll": reverse("cancel-all", args=[conversation]),
        "conversation": reverse("api-conversation", args=[conversation]),
        "session": reverse("session"),
        "socket": f"/ws/conversations/{conversation}",
    }


def _pattern(name: str, gap: str) -> str:
    """Give the address of a route with a gap in the place of its id."""
    nobody = uuid.UUID(int=0)
    return reverse(name, args=[nobody]).replace(str(nobody), gap)
