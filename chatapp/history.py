"""What a model is told of a pane's earlier turns. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streaming.upstream.ports import Message

# Marks an answer that was not finished. A sentence in its place would teach small models to end theirs so.
CUT_MARK = " […]"
# No tokenizer is at hand for most models. Three bytes of UTF-8 for a token errs on the safe side for
# English (about four) and for Chinese and Japanese (about three).
BYTES_PER_TOKEN = 3
# A prompt template's own tokens for each message.
TOKENS_PER_MESSAGE = 8


@dataclass(frozen=True, slots=True)
class Exchange:
    """An earlier prompt and the answer of one pane. `whole` is False when it was stopped or failed."""

    prompt: str
    answer: str
    whole: bool


def messages(system: str, exchanges: Sequence[Exchange], prompt: str, budget_tokens: int | None) -> tuple[Message, ...]:
    """
    Build a call's messages: the system prompt, the newest exchanges that fit, the prompt.

    An exchange without an answer is left out together with its prompt, since many chat templates
    refuse two user messages in a row. The prompt itself is always kept, however long. No budget
    means no limit.
    """
    head = (Message("system", system),) if system else ()
    last = Message("user", prompt)
    spent = sum(_tokens(message) for message in (*head, last))
    kept: list[Message] = []
    for exchange in reversed(exchanges):
        pair = _pair(exchange)
        spent += sum(_tokens(message) for message in pair)
        if budget_tokens is not None and spent > budget_tokens:
            break
        kept[:0] = pair
    return (*head, *kept, last)


def _pair(exchange: Exchange) -> tuple[Message, ...]:
    if not exchange.answer:
        return ()
    answer = exchange.answer if exchange.whole else exchange.answer + CUT_MARK
    return Message("user", exchange.prompt), Message("assistant", answer)


def _tokens(message: Message) -> int:
    return TOKENS_PER_MESSAGE + -(-len(message.content.encode()) // BYTES_PER_TOKEN)
