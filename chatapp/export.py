"""A conversation as a file: whole answers with what they were made by, checked against their archive."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Prefetch

from chatapp.errors import Problem, not_found
from chatapp.integrity import faults_of
from chatapp.models import Conversation, Generation, Turn
from chatapp.models.conversation import epoch_ms
from chatapp.owners import Owner
from streaming.events import VERSION, Json, dumps
from streaming.lifecycle import State

# Of Markdown, and no other: splitlines() would also break a prompt at U+2028.
LINE_END = re.compile(r"\r\n?|\n")
FORMATS = {"json": ("application/json", "json"), "markdown": ("text/markdown; charset=utf-8", "md")}

_WHY_PARTIAL = {
    State.CANCELLED: "stopped before its end",
    State.FAILED: "failed before its end",
    State.INTERRUPTED: "interrupted before its end",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """One ended generation. It is whole if nothing speaks against it: `faults` is what does."""

    row: Generation
    faults: tuple[str, ...]

    def to_dict(self) -> dict[str, Json]:
        row = self.row
        return {
            "id": str(row.pk), "number": row.number, "pane": str(row.pane.uuid),
            "model": row.model, "params": row.params, "state": row.state,
            "whole": not self.faults, "faults": list(self.faults),
            "continues": str(row.continues_id) if row.continues_id else None,
            "text": row.text, "reasoning": row.reasoning, "tools": row.tools,
            "text_length": row.text_length, "text_sha256": row.text_sha256, "finish": row.finish or None,
            "usage": row.usage, "timings": row.timings, "error": row.error, "cancel": row.cancel,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class File:
    name: str
    content_type: str
    content: str


def export(owner: Owner, conversation: uuid.UUID, form: str, *, partial: bool) -> File:
    """
    Write a conversation's prompts and answers. Only whole answers, unless `partial` ones are asked for, marked.

    Raises:
        Problem: `not_found`, or `invalid_field` for an unknown form.
    """
    if form not in FORMATS:
        raise Problem("invalid_field", f"format must be one of {', '.join(FORMATS)}.", field="format")
    found = _read(owner, conversation)
    turns = [(turn, [_answer(row) for row in turn.generations.all()]) for turn in found.turns.all()]
    content_type, ending = FORMATS[form]
    write = _json if form == "json" else _markdown
    return File(f"conversation-{found.pk}.{ending}", content_type, write(found, turns, partial))


def _read(owner: Owner, conversation: uuid.UUID) -> Conversation:
    rows = Generation.objects.select_related("pane", "archive").defer("blocks")
    turns = Prefetch("turns", Turn.objects.prefetch_related(Prefetch("generations", rows)))
    found = Conversation.objects.filter(owner.owns(), pk=conversation).prefetch_related(turns).first()
    if found is None:
        raise not_found()
    return found


def _answer(row: Generation) -> Answer:
    if row.is_live:
        return Answer(row, ("still being written",))
    faults = faults_of(row, getattr(row, "archive", None))
    if row.state in _WHY_PARTIAL:
        faults.insert(0, _WHY_PARTIAL[State(row.state)])
    if row.continues_id is not None:
        faults.append("continues another answer, and is not whole without it")
    return Answer(row, tuple(faults))


def _is_wanted(answer: Answer, partial: bool) -> bool:
    return not answer.row.is_live and (partial or not answer.faults)


def _json(found: Conversation, turns: list[tuple[Turn, list[Answer]]], partial: bool) -> str:
    left_out = [
        {"id": str(answer.row.pk), "state": answer.row.state, "faults": list(answer.faults)}
        for _, answers in turns
        for answer in answers
        if not _is_wanted(answer, partial)
    ]
    document: dict[str, Any] = {
        "v": VERSION,
        "exported_at": epoch_ms(datetime.now(UTC)),
        "conversation": found.to_dict(),
        "turns": [
            {
                "id": str(turn.pk),
                "prompt": turn.prompt,
                "created_at": epoch_ms(turn.created_at),
                "answers": [answer.to_dict() for answer in answers if _is_wanted(answer, partial)],
            }
            for turn, answers in turns
        ],
        "left_out": left_out,
    }
    return dumps(document)


def _markdown(found: Conversation, turns: list[tuple[Turn, list[Answer]]], partial: bool) -> str:
    parts = [f"# {found}"]
    for turn, answers in turns:
        parts += ["## Prompt", _quoted(turn.prompt)]
        wanted = [answer for answer in answers if _is_wanted(answer, partial)]
        for answer in wanted:
            parts += _answer_in_markdown(answer)
        if len(wanted) < len(answers):
            parts.append(f"*Left out, because they are not whole: {len(answers) - len(wanted)}.*")
    return "\n\n".join(parts) + "\n"


def _answer_in_markdown(answer: Answer) -> Iterable[str]:
    row = answer.row
    params = ", ".join(f"{name} {value}" for name, value in sorted(row.params.items()))
    yield f"### {row.model}" + (f" ({params})" if params else "")
    if answer.faults:
        yield f"**Partial: {'; '.join(answer.faults)}.**"
    yield row.text
    yield f"*{' · '.join(_facts(row))}*"


def _facts(row: Generation) -> Iterable[str]:
    yield f"answer {row.number}"
    if row.finish:
        yield f"finish {row.finish}"
    for name, tokens in (row.usage or {}).items():
        if isinstance(tokens, int):
            yield f"{name} {tokens} tokens"
    if "first_token_at" in row.timings and "ended_at" in row.timings:
        yield f"{row.timings['ended_at'] - row.timings['first_token_at']} ms"
    yield f"sha256 {row.text_sha256}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in LINE_END.split(text))
