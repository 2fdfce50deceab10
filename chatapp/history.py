"""What a model is told of a pane's earlier turns. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streaming.upstream.ports import Message

# Marks an answer that was not finished. A sentence in its place would teach small models to end theirs so.
CUT_MARK = " […]"
# What a model is asked when it is to continue an answer of its own.
GO_ON = (
    "Your last answer was cut off. Go on exactly where it stopped. "
    "Repeat nothing of it, and say nothing about the interruption."
)
# No tokenizer is at hand for most models. Three bytes of UTF-8 for a token errs on the safe side for
# English (about four) and for Chinese and Japanese (about three).
BYTES_PER_TOKEN = 3
# A prompt template's own tokens for each message.
TOKENS_PER_MESSAGE = 8


@dataclass(frozen=True, slots=True)
class Exchange:
    """
    An earlier prompt and the answer of one pane. `whole` is False when it was stopped or failed.

    `continued` are the answers that went on from it, in order; then `whole` speaks of the last of them.
    """

    prompt: str
    answer: str
    whole: bool
    continued: tuple[str, ...] = ()


def messages(
    system: str,
    exchanges: Sequence[Exchange],
    prompt: str,
    budget_tokens: int | None,
    *,
    to_continue: Sequence[str] = (),
) -> tuple[Message, ...]:
    """
    Build a call's messages: the system prompt, the newest exchanges that fit, the prompt.

    An exchange without an answer is left out together with its prompt, since many chat templates
    refuse two user messages in a row. The prompt itself is always kept, however long, and so is what
    was answered to it already and is to be continued. No budget means no limit.
    """
    head = (Message("system", system),) if system else ()
    last = _asked(prompt, to_continue)
    spent = sum(_tokens(message) for message in (*head, *last))
    kept: list[Message] = []
    for exchange in reversed(exchanges):
        told = _told(exchange)
        spent += sum(_tokens(message) for message in told)
        if budget_tokens is not None and spent > budget_tokens:
            break
        kept[:0] = told
    return (*head, *kept, *last)


def _told(exchange: Exchange) -> tuple[Message, ...]:
    if not exchange.answer:
        return ()
    *before, newest = exchange.answer, *exchange.continued
    newest = newest if exchange.whole else newest + CUT_MARK
    return *_asked(exchange.prompt, before), Message("assistant", newest)


def _asked(prompt: str, answers: Sequence[str]) -> tuple[Message, ...]:
    """Word a prompt, and for each answer that came and was cut off, that answer and the request to go on."""
    again = (message for answer in answers for message in (Message("assistant", answer), Message("user", GO_ON)))
    return Message("user", prompt), *again


def _tokens(message: Message) -> int:
    return TOKENS_PER_MESSAGE + -(-len(message.content.encode()) // BYTES_PER_TOKEN)
