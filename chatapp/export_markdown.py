"""A conversation as Markdown, for reading. Its headings and facts are its own: what others wrote stands in borders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chatapp.borders import bordered, plain
from chatapp.exported import Answer, Exported, tokens_of
from chatapp.models import Generation


def markdown_of(exported: Exported) -> str:
    parts = [f"# {plain(str(exported.conversation))}"]
    for turn, answers in exported.turns:
        parts += ["## Prompt", bordered(turn.prompt)]
        parts += [part for answer in answers if exported.wants(answer) for part in _answer(answer, answers)]
        left_out = sum(not exported.wants(answer) for answer in answers)
        if left_out:
            parts.append(f"*Left out, because they are not whole: {left_out}.*")
    return "\n\n".join(parts) + "\n"


def _answer(answer: Answer, beside: Sequence[Answer]) -> Iterable[str]:
    row = answer.row
    is_shared = any(other.label == answer.label and other.pane != answer.pane for other in beside)
    params = [f"{name} {value}" for name, value in sorted(row.params.items())]
    more = ", ".join([f"pane {answer.pane}", *params] if is_shared else params)
    yield f"### {plain(answer.label)}" + (f" ({plain(more)})" if more else "")
    if answer.faults:
        yield f"**Partial: {plain('; '.join(answer.faults))}.**"
    yield bordered(row.text)
    yield f"*{plain(' · '.join(_facts(row)))}*"


def _facts(row: Generation) -> Iterable[str]:
    yield f"answer {row.number}"
    yield f"model {row.model}"
    if row.finish:
        yield f"finish {row.finish}"
    for name, tokens in tokens_of(row).items():
        yield f"{name} {tokens} tokens"
    if "first_token_at" in row.timings and "ended_at" in row.timings:
        yield f"{row.timings['ended_at'] - row.timings['first_token_at']} ms"
    yield f"sha256 {row.text_sha256}"
