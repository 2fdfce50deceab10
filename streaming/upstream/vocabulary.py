"""
Token ids that are known to be right, out of a stream that leaves some out.

llama.cpp sends nothing while its text ends in the middle of a character, and then only the last of
the ids behind it (seen: 20 of 60 ids missing in a text of emoji). Its stream does count them, so a hole
is noticed, and the vocabulary is known, so a hole can be filled where only one filling exists.
"""

from __future__ import annotations

from collections.abc import Sequence

from streaming.upstream.unicode import valid

# A character has at most 4 bytes and as many ids. Text that was held back because it might have
# begun a stop string is longer; its splits are many, so looking for a single one is soon in vain.
LONGEST_HOLE_BYTES = 64
LONGEST_HOLE_TOKENS = 16


class Vocabulary:
    """What each token id stands for, in bytes."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces
        self._ids: dict[bytes, list[int]] = {}
        for token, piece in enumerate(pieces):
            if piece:
                self._ids.setdefault(piece, []).append(token)
        self._longest = max(map(len, self._ids), default=0)

    def spell(self, tokens: Sequence[int]) -> bytes | None:
        """Join the bytes of these ids; None if one is unknown."""
        known = [self._pieces[token] for token in tokens if 0 <= token < len(self._pieces)]
        return b"".join(known) if len(known) == len(tokens) else None

    def only_split(self, text: bytes, count: int) -> tuple[int, ...] | None:
        """Give the ids of `text` if exactly one sequence of `count` ids spells it; else None."""
        if len(text) > LONGEST_HOLE_BYTES or count > LONGEST_HOLE_TOKENS:
            return None
        # For each number of ids so far: where they may end, and by which ids; two ways are as good as many.
        ends: dict[int, list[tuple[int, ...]]] = {0: [()]}
        for _ in range(count):
            ends = self._one_further(text, ends)
        ways = ends.get(len(text), [])
        return ways[0] if len(ways) == 1 else None

    def _one_further(self, text: bytes, ends: dict[int, list[tuple[int, ...]]]) -> dict[int, list[tuple[int, ...]]]:
        further: dict[int, list[tuple[int, ...]]] = {}
        for start, ways in ends.items():
            for end in range(start + 1, min(len(text), start + self._longest) + 1):
                for token in self._ids.get(text[start:end], ()):
                    found = further.setdefault(end, [])
                    found.extend((*way, token) for way in ways[: 2 - len(found)])
        return further


class TokenTrail:
    """
    The ids behind an answer so far, as long as they spell exactly its text.

    From the first doubt on there are none: a checkpoint needs a prefix without holes.
    """

    def __init__(self, vocabulary: Vocabulary | None) -> None:
        self._vocabulary = vocabulary
        self._counted = 0

    def follow(self, text: str, tokens: Sequence[int], counted: int) -> tuple[int, ...]:
        """Give all ids behind `text`. `counted` is how many the upstream has made in all."""
        ids = self._ids(text, tokens, counted - self._counted) if self._vocabulary else None
        self._counted = counted
        if ids is None:
            self._vocabulary = None
            return ()
        return ids

    def _ids(self, text: str, tokens: Sequence[int], made: int) -> tuple[int, ...] | None:
        vocabulary = self._vocabulary
        known = vocabulary.spell(tokens) if vocabulary else None
        # Text that had to be mended is no longer what the ids spell.
        if vocabulary is None or known is None or made < len(tokens) or valid(text) != text:
            return None
        raw = text.encode()
        if not raw.endswith(known):
            return None
        missing = vocabulary.only_split(raw[: len(raw) - len(known)], made - len(tokens))
        return None if missing is None else (*missing, *tokens)
