"""Where lines, sentences and blocks end in text that is still growing.

Ends are counted in code points from the beginning of the text. Every character is looked at once,
and where the text was cut into pieces changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Boundary(StrEnum):
    LINE = "line"
    SENTENCE = "sentence"
    BLOCK = "block"


@dataclass(frozen=True, slots=True)
class Fence:
    """An open code fence: the character it is made of, and how many."""

    mark: str
    length: int

    def closed_by(self, line: str) -> bool:
        """Say whether a line ends the fence: same character, at least as many, nothing else."""
        body = line.strip(" \t\n")
        return len(body) >= self.length and not body.strip(self.mark) and _indent(line) < _CODE_INDENT


def fence_opened_by(line: str) -> Fence | None:
    found = _FENCE.match(line)
    if found is None:
        return None
    marks = found["ticks"] or found["tildes"]
    return Fence(marks[0], len(marks))


def is_blank(line: str) -> bool:
    return not line.strip(" \t\r\n")


class Boundaries:
    """
    Finds the ends of one kind, in text fed piece by piece.

    A sentence ends where its last mark does; that is known once white space follows, so the caller
    adds the end of the whole text itself. The end of a line ends a sentence, too. A block ends with
    a blank line outside a code fence, or with the line that closes a fence.
    """

    def __init__(self, kind: Boundary) -> None:
        self._kind = kind
        self._at = 0  # Code points seen so far.
        self._line: list[str] = []  # Pieces of the line that has not ended.
        self._word = ""  # The end of the word that has not ended.
        self._first_word = True
        self._fence: Fence | None = None

    def feed(self, text: str) -> list[int]:
        """Take the next piece; give the ends that it made known, rising."""
        if self._kind is Boundary.SENTENCE:
            ends = self._sentence_ends(text)
        else:
            ends = [end for end in self._line_ends(text) if self._kind is Boundary.LINE or self._ends_block()]
        self._at += len(text)
        return ends

    def _line_ends(self, text: str) -> Iterator[int]:
        """Yield each end with the line itself in `_line`; what is left over stays there."""
        start = 0
        while (end := text.find("\n", start)) >= 0:
            self._line.append(text[start : end + 1])
            yield self._at + end + 1
            self._line.clear()
            start = end + 1
        if start < len(text):
            self._line.append(text[start:])

    def _ends_block(self) -> bool:
        line = "".join(self._line)
        if self._fence is not None:
            closed = self._fence.closed_by(line.rstrip("\r\n"))
            self._fence = None if closed else self._fence
            return closed
        self._fence = fence_opened_by(line.rstrip("\r\n"))
        return is_blank(line)

    def _sentence_ends(self, text: str) -> list[int]:
        ends: list[int] = []
        for found in _WORD_OR_BREAK.finditer(text):
            piece, at = found[0], self._at + found.start()
            if piece.isspace():
                ends.extend(self._word_ended(piece, at))
            else:
                ends.extend(self._word_grew(piece, at))
        return ends

    def _word_ended(self, space: str, at: int) -> Iterator[int]:
        if self._word and _ends_sentence(self._word, first=self._first_word):
            yield at
        for offset, char in enumerate(space):
            if char == "\n":
                yield at + offset + 1
        self._first_word = "\n" in space or (self._first_word and not self._word)
        self._word = ""

    def _word_grew(self, piece: str, at: int) -> Iterator[int]:
        """Chinese and Japanese put no space after a sentence: the next character that is no mark tells."""
        for offset, char in enumerate(piece):
            if _WIDE_END.search(self._word) and char not in _WIDE_MARKS:
                yield at + offset
                self._word = ""
            # More than any mark and abbreviation need; so a word of any length costs the same.
            self._word = (self._word + char)[-_WORD_KEPT:]


def _ends_sentence(word: str, *, first: bool) -> bool:
    if _WIDE_END.search(word):
        return True
    found = _END.search(word)
    if found is None:
        return False
    before = word[: found.start()].strip("([\"'“‘*_").lower()
    numbered = first and before.isdigit()  # "1." at the head of a line counts, it does not end.
    return found[0][0] != "." or not (numbered or before in _ABBREVIATIONS)


def _indent(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip(" "))


_CODE_INDENT = 4  # Four spaces or more make indented code; CommonMark 4.4.
_WORD_KEPT = 32
_FENCE = re.compile(r" {0,3}(?:(?P<ticks>`{3,})[^`\n]*$|(?P<tildes>~{3,}))", re.MULTILINE)
_WORD_OR_BREAK = re.compile(r"\s+|\S+")
_END = re.compile(r"[.!?…]+[\"'”’»)\]*_`]{0,4}$")
_WIDE_MARKS = "。！？．｡」』）”’"
_WIDE_END = re.compile(r"[。！？｡][」』）”’。！？]*$")
_ABBREVIATIONS = frozenset(
    {"mr", "mrs", "ms", "dr", "prof", "fig", "vs", "cf", "etc", "e.g", "i.e", "approx", "eq", "al"}
)
