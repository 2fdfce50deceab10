"""The line of generations that wait for a worker: in which order they are taken, and each one's place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chatapp.models import NOT_ENDED, Generation
from chatapp.owners import Owner
from streaming.lifecycle import LIVE, State

_UNDER_WAY = sorted(LIVE - {State.QUEUED})
_OWNER = ("conversation__user_id", "conversation__guest")


@dataclass(frozen=True, slots=True)
class Waiting:
    gen: str
    owner: str  # the owner's key


def in_fair_order(waiting: Sequence[Waiting], running: Mapping[str, int]) -> list[str]:
    """
    Order those who wait, given in the order of asking: who has least under way comes first.

    Each of an owner's generations counts those before it, running or waiting. So somebody with one
    question does not stand behind all sixteen of another. Pure.
    """
    before = Counter(running)
    ranked = []
    for asked, one in enumerate(waiting):
        ranked.append((before[one.owner], asked, one.gen))
        before[one.owner] += 1
    return [gen for *_, gen in sorted(ranked)]


def line() -> list[str]:
    """Give all that wait, in the order in which free slots are given to them."""
    live = Generation.objects.filter(NOT_ENDED)
    rows = live.filter(state=State.QUEUED).order_by("queued_at", "number").values_list("pk", *_OWNER)
    waiting = [Waiting(str(pk), Owner(user, guest).key) for pk, user, guest in rows]
    if len({one.owner for one in waiting}) <= 1:
        return [one.gen for one in waiting]  # Whatever else an owner has under way comes before all of these.
    under_way = live.filter(state__in=_UNDER_WAY).order_by().values_list(*_OWNER)
    return in_fair_order(waiting, Counter(Owner(user, guest).key for user, guest in under_way))


def places() -> dict[str, int]:
    """Give the place of each that waits, the next being 1."""
    return {gen: place for place, gen in enumerate(line(), start=1)}
