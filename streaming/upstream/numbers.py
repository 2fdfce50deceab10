"""The numbers that services give to choices and to parts, and what they tell of what did not come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streaming.upstream.answer import Answer
from streaming.upstream.faults import fault
from streaming.upstream.finish import stated
from streaming.upstream.tools import as_index
from streaming.upstream.unread import listed, texts_in

# Nobody asks for more than one choice, so so many in a row, each with one piece, are one whose pieces are counted.
CERTAIN: Final = 16
_NONE: Final = object()


class OnlyChoice:
    """
    Finds the one choice that was asked for.

    Another one's text must never be mixed into it; and where a service counts its pieces in the place of the
    choices, none must be lost. So pieces whose numbers go on counting are held back until it is known what they are:
    another choice, as soon as ours goes on, or where each of them finishes; else the rest of ours. A choice that
    never finishes is none, and its text is then a hole in ours.
    """

    def __init__(self, finish: str) -> None:
        self.settled: Any = _NONE  # The number of what is ours without asking, once it has gone on.
        self._finish = finish  # What a choice calls the word for why it ended.
        self._ours: int | None = None
        self._newest = 0  # Of ours and of what is held.
        self._held: list[tuple[int, dict[str, Any]]] = []
        self._left_out = False
        self._others: set[int] = set()  # Choices that said something, and have not finished.

    def admit(self, choices: Any, *, finished: bool) -> list[dict[str, Any]]:
        """Give what belongs to the answer, of the choices of one object; `finished`: ours has."""
        # As nearly all are; an index that is left out is zero.
        only = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
        if only and (only.get("index") or 0) == self.settled:
            return [only]
        admitted: list[dict[str, Any]] = []
        for place, choice in enumerate(listed(choices)):
            if choice:
                number = as_index(choice.get("index"))
                number = place or self._ours or 0 if number is None else number
                admitted += self._one(number, choice, finished=finished)
        return admitted

    def close(self, answer: Answer, read: Callable[[dict[str, Any]], None]) -> None:
        """
        Read what was held back, at the end, unless it is of other choices.

        Raises:
            UpstreamError: hole_in_answer, where what was left out may have been part of the answer.
        """
        if answer.finish is not None and any(self._finishes(choice) for _, choice in self._held):
            self._settle()
        for _, choice in self._held:
            read(choice)
        self._held = []
        if self._others or (self._left_out and (answer.finish is None or answer.empty)):
            raise fault("hole_in_answer", detail="the text came as that of several choices")

    def _one(self, number: int, choice: dict[str, Any], *, finished: bool) -> list[dict[str, Any]]:
        says = next(texts_in(choice), None) is not None
        if self._ours is None:
            self._ours = self._newest = number
            return [choice]
        if number == self._ours:
            if says:
                self._settle()
            return [choice]
        follows = number == self._newest + 1 or (number == self._newest and not says)
        if self.settled is not _NONE or not follows or (finished and says):
            self._settle()
            self._leave_out(number, choice)
            return []
        return self._hold(number, choice)

    def _hold(self, number: int, choice: dict[str, Any]) -> list[dict[str, Any]]:
        self._held.append((number, choice))
        self._newest = number
        if len(self._held) < CERTAIN:
            return []
        certain, self._held, self._ours = self._held, [], number
        return [choice for _, choice in certain]

    def _settle(self) -> None:
        """What is held is not ours."""
        held, self._held = self._held, []
        self.settled = self._ours
        for number, choice in held:
            self._leave_out(number, choice)

    def _leave_out(self, number: int, choice: dict[str, Any]) -> None:
        self._left_out = True
        if next(texts_in(choice), None):
            self._others.add(number)
        if self._finishes(choice):
            self._others.discard(number)
        if len(self._others) > CERTAIN:
            raise fault("hole_in_answer", detail="the text came as that of many choices")

    def _finishes(self, choice: dict[str, Any]) -> bool:
        return stated(choice.get(self._finish)) is not None


class PartNumbers:
    """The numbers of the parts of one answer, of which each follows the last."""

    def __init__(self) -> None:
        self.newest: int | None = None

    def see(self, number: Any) -> None:
        """
        Look at the number of a part that begins or goes on.

        Raises:
            UpstreamError: hole_in_answer, where a number was left out, and with it a part.
        """
        if isinstance(number, int):
            if self.newest is not None and number > self.newest + 1:
                raise fault("hole_in_answer", detail=f"part {number} came after part {self.newest}")
            self.newest = max(number, self.newest or 0)
