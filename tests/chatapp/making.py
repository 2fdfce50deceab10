"""Rows and outcomes that tests begin with."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import replace
from typing import Any

from chatapp.models import Conversation, Generation, Turn
from streaming.events import Body, Done, Event, Start, TextDelta, dumps, event_to_dict
from streaming.markdown import render
from streaming.snapshot import Snapshot, fold
from streaming.store import Outcome


def a_conversation(guest: str = "g1") -> Conversation:
    return Conversation.objects.create(guest=guest)


def a_turn(conversation: Conversation, prompt: str = "Hello") -> Turn:
    return conversation.turns.create(
        index=conversation.turns.count(), prompt=prompt, key=str(uuid.uuid4()), fingerprint="f"
    )


def a_generation(turn: Turn, **columns: Any) -> Generation:
    """Queue a generation in the turn's conversation, in its one pane."""
    conversation = turn.conversation
    pane = conversation.panes.first() or conversation.panes.create(uuid=uuid.uuid4(), model="echo", position=0)
    number = conversation.generations.count() + 1
    row = {"pane": pane, "turn": turn, "model": pane.model, "number": number, **columns}
    return conversation.generations.create(**row)


def outcome_of(gen: str, attempt: int, *bodies: Body) -> Outcome:
    """Fold bodies into the end of a generation, rendered."""
    events = [Event(gen, attempt, seq, 1_700_000_000_000 + seq, body) for seq, body in enumerate(bodies, start=1)]
    snapshot = Snapshot(gen)
    for event in events:
        snapshot = fold(snapshot, event)
    return Outcome(_rendered(snapshot), "\n".join(dumps(event_to_dict(event)) for event in events))


def a_whole_answer(gen: str, attempt: int = 1, text: str = "Good **morning**") -> Outcome:
    done = Done("stop", hashlib.sha256(text.encode()).hexdigest(), len(text), {"ended_at": 5})
    return outcome_of(gen, attempt, Start("echo", "p"), TextDelta(text), done)


def _rendered(snapshot: Snapshot) -> Snapshot:
    blocks = tuple(render(snapshot.text))
    return replace(snapshot, blocks=blocks, shown=len(snapshot.text), rendered_seq=snapshot.seq)
