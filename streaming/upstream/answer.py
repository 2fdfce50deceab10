"""What every dialect hands its findings to: the channels of one answer, as chunks."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any, Final

from streaming.errors import UpstreamError
from streaming.upstream.faults import fault
from streaming.upstream.finish import FAILURES, FINISHES, conclude, plain, stated
from streaming.upstream.ports import Chunk, ReasoningChunk, TextChunk
from streaming.upstream.think import ThinkTags
from streaming.upstream.tools import ToolCalls
from streaming.upstream.unicode import Surrogates
from streaming.upstream.unread import Unread, texts_in
from streaming.upstream.usage import UsageTotal

# Of an answer that ended so, what is missing was never written.
CUT: Final = ("length", "content_filter")


class Answer:
    """
    One answer under way.

    A refusal is shown as text: it is what the model has to say. What tells it from an answer is the finish.
    """

    def __init__(self, *, think: ThinkTags | None = None, tools: ToolCalls | None = None) -> None:
        self.tools = tools or ToolCalls()
        self.usage = UsageTotal()
        self.finish: str | None = None  # The upstream's word; the last one said stands.
        self.taken = 0  # How often something was said: a payload that leaves it as it was said nothing that was read.
        self._think = think
        self._out: list[Chunk] = []
        self._text = Surrogates()
        self._reasoning = Surrogates()
        self._said = StringIO()  # Text and refusal as they came.
        self._say = self._said.write
        self._reasoned = StringIO()
        self._unread = Unread()
        self._tokens: tuple[int, ...] = ()
        self._refused = False
        self._answered = False

    @property
    def said(self) -> str:
        """All text so far, as it came: made anew each time, so nothing for each event."""
        return self._said.getvalue()

    @property
    def reasoned(self) -> str:
        """All reasoning so far, likewise."""
        return self._reasoned.getvalue()

    @property
    def empty(self) -> bool:
        """Nothing was said that a person would see."""
        return not (self._said.tell() or self._reasoned.tell() or self.tools.begun)

    def ends_with(self, text: str) -> bool:
        """Say whether this is what was said last, at the price of its own length."""
        end = self._said.tell()
        self._said.seek(max(0, end - len(text)))
        return self._said.read() == text

    def text(self, text: str, tokens: tuple[int, ...] = ()) -> None:
        """Add text. Token ids that come before their text wait for it."""
        self.taken += 1
        self._say(text)
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
        self.taken += 1
        self._reasoned.write(text)
        text = self._reasoning.feed(text)
        if text:
            self._out.append(ReasoningChunk(text))

    def refusal(self, text: str) -> None:
        self.taken += 1
        self._say(text)
        text = self._text.feed(text)
        if text:
            self._refused = True
            self._out.append(TextChunk(text))

    def tool(self, *, id: str | None, index: Any, name: str | None, arguments: Any) -> None:  # noqa: A002
        self.taken += 1
        chunk = self.tools.add(id=id, index=index, name=name, arguments=arguments)
        if chunk:
            self._out.append(chunk)

    def whole_call(self, *, id: str | None, name: str | None, arguments: Any) -> None:  # noqa: A002
        """
        Take a tool call that came in one piece.

        Raises:
            UpstreamError: malformed_tool_call, for one without a name.
        """
        if not name:
            raise fault("malformed_tool_call", detail="a call without a name")
        self.tool(id=id, index=None, name=name, arguments=arguments or "{}")

    def used(self, fields: dict[str, int | None]) -> None:
        self.usage.overlay(fields)
        chunk = self.usage.first()
        if chunk:
            self._out.append(chunk)

    def finished(self, word: Any) -> None:
        """Take the upstream's word for why it ended, if this is one."""
        self.finish = stated(word) or self.finish

    def passed_over(self) -> None:
        """What was read is known, and nothing that the person is to see."""
        self.taken += 1

    def unread(self, value: Any) -> None:
        """
        Remember text that nobody knows how to read.

        Raises:
            UpstreamError: hole_in_answer, where it is more than could be what came elsewhere.
        """
        for path, text in texts_in(value):
            if not self._unread.add(path, text):
                raise _unreadable(path)

    def reconcile(self, whole: Answer) -> None:
        """
        Take an object of the upstream that repeats all that it said: give out what did not come before.

        Raises:
            UpstreamError: hole_in_answer, where it contradicts what came.
        """
        self.taken += 1
        self._unread.take(whole._unread)
        reasoning = whole.reasoned and missing(self.reasoned, whole.reasoned)
        if reasoning:
            self.reasoning(reasoning)
        text = whole.said and missing(self.said, whole.said)
        if text:
            (self.refusal if whole._refused else self.text)(text)
        self._out.extend(self.tools.reconcile(whole.tools))
        self.finished(whole.finish)

    def hole(self) -> UpstreamError | None:
        """Say what is wrong with an answer of which something was not read, and did not come elsewhere."""
        path = self._unread.lost((self.said, self.reasoned))
        return None if path is None else _unreadable(path)

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
            UpstreamError: its finish means that the call failed; or malformed_tool_call, where arguments came
                that belong to no call.
        """
        raw = stated(self.finish)
        word = plain(raw or "")
        # A limit or a filter may have struck before the first argument: then none does not mean "none needed".
        kind = FINISHES.get(word)
        lost = self.tools.ownerless and kind not in CUT
        if word not in FAILURES and not lost:
            self._out.extend(self.tools.close_all(cut=kind not in ("stop", "tool_calls")))
        yield from self.broken_off()
        if lost:
            raise fault("malformed_tool_call", detail="arguments that belong to no call with a name")
        refused = self._refused and not self._answered
        yield conclude(raw, tool_completed=self.tools.completed, refused=refused)

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


def _unreadable(path: str) -> UpstreamError:
    return fault("hole_in_answer", detail=f"text that nobody reads at {path}")


def missing(came: str, whole: str) -> str:
    """
    Give what `whole` holds behind what came of it.

    Raises:
        UpstreamError: hole_in_answer, where it holds something else in its place.
    """
    if whole.startswith(came):
        return whole[len(came) :]
    # Services trim what they repeat, and some repeat no more than their last piece.
    if whole.strip() not in came:
        raise fault("hole_in_answer", detail="the whole answer, as it was repeated, is not the one that came")
    return ""
