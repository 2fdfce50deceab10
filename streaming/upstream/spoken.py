"""What came of an answer piece by piece, held against the final forms in which a service says it once more. Pure."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, TypeAlias

from streaming.upstream.faults import fault

# (), (item,) or (item, part): all of a channel, one item of it, or one part of an item.
Place: TypeAlias = tuple[Hashable, ...]
# The part under which the rest of an item, or of all, is kept.
_REST: Final = None


class Spoken:
    """
    One channel's text, by item and part, in the order in which it came.

    A final form may hold more than what came for its place. What came is then its beginning, and the rest
    is told late. Anything else means that text was lost in the middle, or changed: that must not be hidden.
    """

    def __init__(self) -> None:
        self._items: dict[Hashable, dict[Hashable, list[str]]] = {}
        self._last: Place | None = None  # Where text came last, and
        self._pieces: list[str] = []  # what came there.
        # What gateways that number items otherwise in each form say again, or two items that say the same.
        self._again: dict[Hashable, str] = {}

    def __bool__(self) -> bool:
        return bool(self._items)

    def __contains__(self, item: Hashable) -> bool:
        return item in self._items

    def spoke_at(self, place: Place) -> bool:
        """Say whether anything came for the item of a place, or for anything where it names none."""
        return place[0] in self._items if place else bool(self._items)

    def came(self, item: Hashable, part: Hashable, text: str) -> None:
        place = (item, part)
        if place != self._last:
            self._last = place
            self._pieces = self._items.setdefault(item, {}).setdefault(part, [])
        self._pieces.append(text)

    def missing(self, final: str, place: Place) -> str:
        """
        Give what a final form has beyond what came for its place, which counts as come from then on.

        A final form without text says nothing: services leave it out where they sent the text before. Where an
        item that is new says what the last one said, all of the channel must tell whether it is another.

        Raises:
            UpstreamError: hole_in_answer.
        """
        if place == ():
            again, self._again = self._again, {}
            final = final or "".join((self._heard(()), *again.values()))
        if not final or self._came_with_its_item(place):
            return ""
        heard = self._heard(place)
        if not heard and place and self._last and final == self._heard(self._last[:1]):
            self._again[place[0]] = final
            return ""
        rest = beyond(heard, final)
        if rest and heard and self._last and self._last[: len(place)] != place:
            raise fault("hole_in_answer", detail="the rest of a part came when a later one had begun")
        if rest:
            item, part = (*place, _REST, _REST)[:2]
            self.came(item, part, rest)
        return rest

    def _came_with_its_item(self, place: Place) -> bool:
        return len(place) > 1 and _REST in self._items.get(place[0], {})

    def _heard(self, place: Place) -> str:
        items = [self._items.get(place[0], {})] if place else self._items.values()
        if len(place) > 1:
            return "".join(self._items.get(place[0], {}).get(place[1], ()))
        return "".join(piece for parts in items for pieces in parts.values() for piece in pieces)


def beyond(heard: str, final: str) -> str:
    """
    Give what `final` has beyond `heard`.

    Raises:
        UpstreamError: hole_in_answer; `heard` is not its beginning.
    """
    if final.startswith(heard):
        return final[len(heard) :]
    if heard.strip() == final.strip() and final in heard:
        return ""  # Gateways trim what they repeat.
    # Pieces may hold the halves of a pair that the final form holds whole.
    came, whole = (text.encode("utf-16-le", "surrogatepass") for text in (heard, final))
    if not whole.startswith(came):
        raise fault("hole_in_answer", detail=f"{len(heard)} characters came that do not begin the {len(final)} it says")
    return whole[len(came) :].decode("utf-16-le", "surrogatepass")


class Doubt:
    """
    What a jump in the numbers of events puts in doubt, until final forms have said it whole.

    Items are numbered too, and come one after the other. So a jump while one item is open concerns that item
    alone, and its final form settles it. After any other jump whole items may be missing, and only the list of
    all of them can say that none is.
    """

    def __init__(self) -> None:
        self.newest = -1  # The highest number of an item so far.
        self._open: set[int] = set()
        self._doubted: set[int] = set()
        self._all = False

    def __bool__(self) -> bool:
        return self._all or bool(self._doubted)

    def jumped(self, item: object, *, begins: bool) -> None:
        """Note that events are missing before one of this item, which is None for an event of none."""
        if item == self.newest and item in self._open:
            self._doubted.add(self.newest)
        elif not begins or self._open or item != self.newest + 1:
            self._all = True

    def begun(self, item: int) -> None:
        """Take the first event of a further item."""
        self.newest = item
        self._open.add(item)

    def closed(self, item: int, *, whole: bool) -> None:
        """Take an item's final form; `whole`: it holds what the item is."""
        self._open.discard(item)
        if whole:
            self._doubted.discard(item)
