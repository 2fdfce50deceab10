"""The numbers that services give to choices and to parts, and what they tell of what did not come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streaming.upstream.answer import Answer
from streaming.upstream.faults import fault
from streaming.upstream.tools import as_index
from streaming.upstream.unread import listed

# Nobody asks for more than one choice, so so many in a row, each with one piece, are one whose pieces are counted.
CERTAIN: Final = 16
_NONE: Final = object()


class OnlyChoice:
    """
    Finds the one choice that was asked for.

    Another one's text must never be mixed into it; and where a service counts its pieces in the place of the
    choices, none must be lost. So pieces whose numbers go on counting are held back until it is known what they are:
    another choice, as soon as ours goes on; the rest of ours, if the answer ends before that, or after many of them.
    """

    def __init__(self) -> None:
        self.settled: Any = _NONE  # The number of what is ours without asking, once it has come twice.
        self.left_out = False  # Pieces of other choices came.
        self._ours: int | None = None
        self._counts = True  # Every number so far was one more than the last.
        self._held: list[dict[str, Any]] = []

    def admit(self, choices: Any) -> list[dict[str, Any]]:
        """Give what belongs to the answer, of the choices of one object."""
        admitted: list[dict[str, Any]] = []
        for place, choice in enumerate(listed(choices)):
            if choice:
                number = as_index(choice.get("index"))
                admitted += self._one(choice, place or self._ours or 0 if number is None else number)
        return admitted

    def close(self, answer: Answer, read: Callable[[dict[str, Any]], None]) -> None:
        """
        Read what was held back, at the end, unless our choice had finished before it came.

        Raises:
            UpstreamError: hole_in_answer, where what was left out may have been part of the answer.
        """
        rest, self._held = self._held, []
        for choice in rest if answer.finish is None else ():
            read(choice)
        others = self.left_out or (rest and answer.finish is not None)
        if others and (answer.finish is None or answer.empty):
            raise fault("hole_in_answer", detail="the text came as that of several choices")

    def _one(self, choice: dict[str, Any], number: int) -> list[dict[str, Any]]:
        if self._ours is None:
            self._ours = number
            return [choice]
        if number == self._ours:
            self._settle(others=bool(self._held))
            return [choice]
        if not self._counts or number != self._ours + len(self._held) + 1:
            self._settle(others=True)
            return []
        self._held.append(choice)
        if len(self._held) < CERTAIN:
            return []
        certain, self._held, self._ours = self._held, [], number
        return certain

    def _settle(self, *, others: bool) -> None:
        self._counts, self._held = False, []
        self.settled = self._ours
        self.left_out = self.left_out or others


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
