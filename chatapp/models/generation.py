"""What models answered: generations and their archived events."""

from __future__ import annotations

import hashlib
import secrets
import uuid
import zlib
from typing import Any

from django.db import models
from django.utils.timezone import now

from chatapp.models.conversation import Conversation, Pane, Turn
from streaming.lifecycle import LIVE, TERMINAL, State
from streaming.log.ports import Ref

STOP_KEY_LENGTH = 32

_IS_LIVE = models.Q(state__in=sorted(state.value for state in LIVE))
_IS_TERMINAL = models.Q(state__in=sorted(state.value for state in TERMINAL))

# The rows of what is live, as a constraint below says. SQLite has an index for these words; for a list of states
# it would read every generation there is.
NOT_ENDED = models.Q(ended_at__isnull=True)


def new_stop_key() -> str:
    return secrets.token_hex(STOP_KEY_LENGTH // 2)


class Generation(models.Model):
    """
    One model's answer to one turn. Its id is the protocol's `gen`, and is never reused.

    While it is live, the log holds what it says; the fields from `seq` on are written once, at its
    end. `render_version` 0 means that `blocks` must be made from `text` before they are shown.
    `continues` names the answer whose text this one was given to go on from. `request` makes retry
    and continue idempotent; it is empty for those that came with their turn. Whoever has `stop_key`
    may stop it, and nothing else; the empty one of an earlier version's row stops nothing.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="generations")
    turn = models.ForeignKey(Turn, models.CASCADE, related_name="generations")
    pane = models.ForeignKey(Pane, models.CASCADE, related_name="generations")
    number = models.PositiveIntegerField()  # 1, 2, 3 … in the conversation
    continues = models.ForeignKey("self", models.CASCADE, null=True, blank=True, related_name="+")
    # The database knows the default too: web processes of the version before may still insert rows.
    request = models.CharField(max_length=128, blank=True, default="", db_default="")
    stop_key = models.CharField(max_length=STOP_KEY_LENGTH, blank=True, default=new_stop_key, db_default="")
    model = models.CharField(max_length=200)
    params = models.JSONField(default=dict)
    state = models.CharField(max_length=20, default=State.QUEUED.value, choices=[(s.value, s.value) for s in State])
    attempt = models.PositiveIntegerField(default=0)
    queued_at = models.DateTimeField(default=now, editable=False)
    ended_at = models.DateTimeField(null=True, blank=True)

    seq = models.PositiveIntegerField(default=0)
    text = models.TextField(blank=True)
    text_length = models.PositiveIntegerField(default=0)  # in code points
    text_sha256 = models.CharField(max_length=64, blank=True)
    reasoning = models.TextField(blank=True)
    tools = models.JSONField(default=list)
    steps = models.JSONField(default=list)
    usage = models.JSONField(null=True, blank=True)
    finish = models.CharField(max_length=20, blank=True)
    error = models.JSONField(null=True, blank=True)
    cancel = models.JSONField(null=True, blank=True)
    resumed = models.PositiveIntegerField(default=0)
    timings = models.JSONField(default=dict)
    blocks = models.JSONField(default=list)
    render_version = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("number",)
        constraints = (
            models.UniqueConstraint(fields=("conversation", "number"), name="generation_number"),
            models.CheckConstraint(name="generation_number_from_1", condition=models.Q(number__gte=1)),
            models.UniqueConstraint(
                fields=("conversation", "request"), name="generation_request", condition=~models.Q(request="")
            ),
            models.CheckConstraint(
                name="generation_ended_when_terminal",
                condition=(_IS_LIVE & models.Q(ended_at__isnull=True))
                | (_IS_TERMINAL & models.Q(ended_at__isnull=False)),
            ),
        )
        indexes = (
            models.Index(fields=("queued_at",), name="generation_live", condition=_IS_LIVE),
            models.Index(fields=("ended_at",), name="generation_ended"),
        )

    def __str__(self) -> str:
        return f"{self.model}: {self.state}"

    @property
    def ref(self) -> Ref:
        return Ref(str(self.conversation_id), self.number, str(self.pk))

    @property
    def is_live(self) -> bool:
        return self.state in LIVE


class EventArchive(models.Model):
    """All events of an ended generation: their JSON, one a line, compressed."""

    generation = models.OneToOneField(Generation, models.CASCADE, primary_key=True, related_name="archive")
    count = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64)  # of the lines, not of what they are compressed to
    body = models.BinaryField()

    def __str__(self) -> str:
        return f"{self.count} events"

    @staticmethod
    def columns(events: str) -> dict[str, Any]:
        """Give the columns that keep these lines."""
        lines = events.encode()
        return {
            "count": sum(1 for line in events.split("\n") if line),  # splitlines() also splits at U+2028.
            "sha256": hashlib.sha256(lines).hexdigest(),
            "body": zlib.compress(lines),
        }

    def events(self) -> str:
        return zlib.decompress(self.body).decode()
