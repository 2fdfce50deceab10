"""What the operator sees: everything. They change nothing, but may stop an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from chatapp.models import Conversation, EventArchive, Generation, Turn
from chatapp.wiring import web
from streaming.errors import LogUnavailable
from streaming.lifecycle import LIVE
from streaming.log.ports import Ref

BY_OPERATOR = "operator"


class ReadOnly:
    """Keeps an admin page or inline from adding, changing and deleting."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return False


async def _stop(refs: Sequence[Ref]) -> None:
    await asyncio.gather(*(web().cancel(ref, BY_OPERATOR) for ref in refs))


class TurnInline(ReadOnly, admin.TabularInline):  # type: ignore[type-arg]
    model = Turn
    fields = ("index", "prompt", "created_at")
    extra = 0


@admin.register(Conversation)
class ConversationAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("title", "user", "created_at", "updated_at")
    search_fields = ("id", "title", "turns__prompt", "user__username")
    date_hierarchy = "created_at"
    inlines = (TurnInline,)


@admin.register(Generation)
class GenerationAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("id", "model", "state", "attempt", "text_length", "queued_at", "ended_at")
    list_filter = ("state", "model")
    search_fields = ("id", "conversation__id", "text")
    date_hierarchy = "queued_at"
    exclude = ("blocks", "stop_key")
    actions = ("stop",)

    @admin.action(description="Stop the selected answers", permissions=["stop"])
    def stop(self, request: HttpRequest, chosen: QuerySet[Generation]) -> None:
        refs = [row.ref for row in chosen.filter(state__in=sorted(LIVE))]
        try:
            async_to_sync(_stop)(refs)
        except LogUnavailable:
            self.message_user(request, "The log cannot be reached; nothing was asked to stop.", messages.ERROR)
        else:
            self.message_user(request, f"{len(refs)} answers were asked to stop.")

    def has_stop_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Generation]:
        return super().get_queryset(request).select_related("conversation", "turn", "pane")


@admin.register(EventArchive)
class EventArchiveAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("generation_id", "count", "sha256")
    search_fields = ("generation__id",)
    exclude = ("body",)
    readonly_fields = ("events",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[EventArchive]:
        return super().get_queryset(request).select_related("generation")
