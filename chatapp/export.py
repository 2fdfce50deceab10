"""A conversation as a file: whole answers with what they were made by, checked against their archive."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Prefetch

from chatapp.borders import one_line
from chatapp.errors import Problem, not_found
from chatapp.export_csv import csv_of
from chatapp.export_markdown import markdown_of
from chatapp.exported import Answer, Exported, LabelOf, answers_of
from chatapp.models import Conversation, Generation, Turn
from chatapp.models.conversation import epoch_ms
from chatapp.owners import Owner
from streaming.events import VERSION, Json, dumps


@dataclass(frozen=True, slots=True)
class File:
    name: str
    content_type: str
    content: str


@dataclass(frozen=True, slots=True)
class Form:
    content_type: str
    ending: str
    write: Callable[[Exported], str]


def export(owner: Owner, conversation: uuid.UUID, name: str, label_of: LabelOf, *, partial: bool) -> File:
    """
    Write a conversation's prompts and answers. Only whole answers, unless `partial` ones are asked for, marked.

    Raises:
        Problem: `not_found`, or `invalid_field` for an unknown form.
    """
    form = FORMS.get(name)
    if form is None:
        raise Problem("invalid_field", f"format must be one of {', '.join(FORMS)}.", field="format")
    found = _read(owner, conversation)
    turns = [(turn, answers_of(turn.generations.all(), label_of)) for turn in found.turns.all()]
    content = form.write(Exported(found, turns, partial))
    return File(f"{file_stem(str(found))}.{form.ending}", form.content_type, content)


# A path's separators and what Windows forbids; what is left out at either end hides files, or is lost there.
_FORBIDDEN = re.compile(r'[\\/:*?"<>|%\x00-\x1f\x7f]+')
_ENDS = " .-_~"
# Words that Windows takes for devices, whatever comes after a dot.
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\.|$)", re.IGNORECASE)
_MAX_STEM_BYTES = 150


def file_stem(title: str) -> str:
    """Make a title into the name of a file, on any system; "conversation" if nothing of it is left."""
    name = _FORBIDDEN.sub(" ", one_line(title)).encode()[:_MAX_STEM_BYTES].decode(errors="ignore")
    name = " ".join(name.split()).strip(_ENDS)
    return f"conversation {name}" if _DEVICES.match(name) else name or "conversation"


def _read(owner: Owner, conversation: uuid.UUID) -> Conversation:
    rows = Generation.objects.select_related("pane", "archive").defer("blocks")
    turns = Prefetch("turns", Turn.objects.prefetch_related(Prefetch("generations", rows)))
    found = Conversation.objects.filter(owner.owns(), pk=conversation).prefetch_related(turns).first()
    if found is None:
        raise not_found()
    return found


def _json(exported: Exported) -> str:
    left_out = [
        {"id": str(answer.row.pk), "state": answer.row.state, "faults": list(answer.faults)}
        for _, answers in exported.turns
        for answer in answers
        if not exported.wants(answer)
    ]
    document: dict[str, Any] = {
        "v": VERSION,
        "exported_at": epoch_ms(datetime.now(UTC)),
        "conversation": exported.conversation.to_dict(),
        "turns": [
            {
                "id": str(turn.pk),
                "prompt": turn.prompt,
                "created_at": epoch_ms(turn.created_at),
                "answers": [_answer(answer) for answer in answers if exported.wants(answer)],
            }
            for turn, answers in exported.turns
        ],
        "left_out": left_out,
    }
    return dumps(document)


def _answer(answer: Answer) -> dict[str, Json]:
    row = answer.row
    return {
        "id": str(row.pk), "number": row.number, "pane": str(row.pane.uuid),
        "model": row.model, "label": answer.label, "params": row.params, "state": row.state,
        "whole": not answer.faults, "faults": list(answer.faults),
        "continues": str(row.continues_id) if row.continues_id else None,
        "text": row.text, "reasoning": row.reasoning, "tools": row.tools,
        "text_length": row.text_length, "text_sha256": row.text_sha256, "finish": row.finish or None,
        "usage": row.usage, "timings": row.timings, "error": row.error, "cancel": row.cancel,
    }  # fmt: skip


FORMS = {
    "json": Form("application/json", "json", _json),
    "markdown": Form("text/markdown; charset=utf-8", "md", markdown_of),
    "csv": Form("text/csv; charset=utf-8; header=present", "csv", csv_of),
}
