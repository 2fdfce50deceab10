"""What every dialect hands its findings to: the channels of one answer, as chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streaming.upstream.finish import FAILURES, FINISHES, conclude
from streaming.upstream.ports import Chunk, ReasoningChunk, TextChunk
from streaming.upstream.think import ThinkTags
from streaming.upstream.tools import ToolCalls
from streaming.upstream.unicode import Surrogates, valid
from streaming.upstream.usage import UsageTotal


class Answer:
    """
    One answer under way.

    A refusal is shown as text: it is what the model has to say. What tells it from an answer is the finish.
    """

    def __init__(self, *, think: ThinkTags | None = None, tools: ToolCalls | None = None) -> None:
        self.tools = tools or ToolCalls()
        self.usage = UsageTotal()
        self.finish: str | None = None  # The upstream's word; the last one said stands.
        self._think = think
        self._out: list[Chunk] = []
        self._text = Surrogates()
        self._reasoning = Surrogates()
        self._tokens: tuple[int, ...] = ()
        self._refused = False
        self._answered = False

    def text(self, text: str, tokens: tuple[int, ...] = ()) -> None:
        """Add text. Token ids that come before their text wait for it."""
        if self._think:
            reasoning, text = self._think.feed(text)
            self.reasoning(reasoning)
            tokens = ()  # Ids cannot be split along with the text.
        text = self._text.feed(text)
        if tokens or self._tokens:
            if not all(type(token) is int for token in tokens):
                raise TypeError("a token's id is a number")
            tokens = (*self._tokens, *tokens)
            self._tokens = () if text else tokens
        if text:
            self._answered = True
            self._out.append(TextChunk(text, tokens))

    def reasoning(self, text: str) -> None:
        text = self._reasoning.feed(text)
        if text:
            self._out.append(ReasoningChunk(text))

    def refusal(self, text: str) -> None:
        text = self._text.feed(text)
        if text:
            self._refused = True
            self._out.append(TextChunk(text))

    def tool(self, *, id: str | None, index: int | None, name: str | None, arguments: Any) -> None:  # noqa: A002
        chunk = self.tools.add(id=id, index=index, name=name, arguments=arguments)
        if chunk:
            self._out.append(chunk)

    def used(self, fields: dict[str, int | None]) -> None:
        self.usage.overlay(fields)
        chunk = self.usage.first()
        if chunk:
            self._out.append(chunk)

    def take(self) -> list[Chunk]:
        """Give what is new."""
        out, self._out = self._out, []
        return out

    def broken_off(self) -> list[Chunk]:
        """Give the last chunks of an answer that has no end: what was held back, and its usage."""
        self._flush()
        usage = self.usage.last()
        if usage:
            self._out.append(usage)
        return self.take()

    def end(self) -> Iterator[Chunk]:
        """
        Give the last chunks of an answer that ended by its dialect's own sign.

        Raises:
            UpstreamError: its finish means that the call failed.
        """
        finish = None if self.finish is None else valid(str(self.finish))
        if finish not in FAILURES:
            # A limit or a filter may have struck before the first argument: then none does not mean "none needed".
            self._out.extend(self.tools.close_all(cut=FINISHES.get(finish or "") in ("length", "content_filter")))
        yield from self.broken_off()
        refused = self._refused and not self._answered
        yield conclude(finish, tool_completed=self.tools.completed, refused=refused)

    def _flush(self) -> None:
        if self._think:
            think, self._think = self._think, None
            reasoning, text = think.finish()
            self.reasoning(reasoning)
            self.text(text)
        for channel, chunk in ((self._reasoning, ReasoningChunk), (self._text, TextChunk)):
            rest = channel.finish()
            if rest:
                self._out.append(chunk(rest))
