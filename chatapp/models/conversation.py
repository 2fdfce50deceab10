"""What a person made: conversations, panes, turns."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import models
from django.utils.timezone import now

TITLE_LENGTH = 200


def epoch_ms(at: datetime) -> int:
    """Give the protocol's unit of time."""
    return round(at.timestamp() * 1000)


class Conversation(models.Model):
    """A person's thread. Belongs to a user, or to a guest by the id in their session."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="+")
    guest = models.CharField(max_length=32, blank=True)
    title = models.CharField(max_length=TITLE_LENGTH, blank=True)
    created_at = models.DateTimeField(default=now, editable=False)
    updated_at = models.DateTimeField(default=now, editable=False)

    class Meta:
        ordering = ("-updated_at",)
        constraints = (
            models.CheckConstraint(
                name="conversation_has_one_owner",
                condition=models.Q(user__isnull=False, guest="") | (models.Q(user__isnull=True) & ~models.Q(guest="")),
            ),
        )
        indexes = (
            models.Index(fields=("user", "-updated_at"), name="conversation_user"),
            models.Index(fields=("guest", "-updated_at"), name="conversation_guest"),
        )

    def __str__(self) -> str:
        return self.title or "Untitled"

    def to_dict(self) -> dict[str, Any]:
        """Give its part of the sync document."""
        return {"id": str(self.pk), "title": self.title, "created_at": epoch_ms(self.created_at)}


class Pane(models.Model):
    """
    One column. The browser makes its UUID, which is unique within the conversation only.

    So nobody learns from an answer which UUIDs other conversations use.
    """

    uuid = models.UUIDField()
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="panes")
    model = models.CharField(max_length=200)  # the catalogue's id
    params = models.JSONField(default=dict)
    position = models.PositiveSmallIntegerField()
    active = models.BooleanField(default=True)  # whether the next turn would use it

    class Meta:
        ordering = ("position",)
        constraints = (models.UniqueConstraint(fields=("conversation", "uuid"), name="pane_unique"),)

    def __str__(self) -> str:
        return f"{self.model} ({self.uuid})"

    def to_dict(self) -> dict[str, Any]:
        return {"id": str(self.uuid), "model": self.model, "params": self.params}


class Turn(models.Model):
    """One prompt. `key` makes posting it idempotent; `fingerprint` tells a repeat from a mistake."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="turns")
    index = models.PositiveIntegerField()  # 0, 1, 2 … in the conversation
    prompt = models.TextField()
    key = models.CharField(max_length=64)
    fingerprint = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=now, editable=False)

    class Meta:
        ordering = ("index",)
        constraints = (
            models.UniqueConstraint(fields=("conversation", "index"), name="turn_index"),
            models.UniqueConstraint(fields=("conversation", "key"), name="turn_key"),
        )

    def __str__(self) -> str:
        return self.prompt[:60]
