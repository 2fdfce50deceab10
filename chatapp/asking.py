"""What both ways of asking a model share: a new turn, and another answer to one that was asked before."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.db import IntegrityError, transaction
from django.db.models import OuterRef, Subquery

from chatapp.errors import Problem
from chatapp.models import Generation, Turn
from chatapp.parsing import PaneChoice

# Gives a pane's parameters together with its model's own. Raises a Problem for a model that cannot be used now.
Effective: TypeAlias = Callable[[PaneChoice], Mapping[str, Any]]

_OWN = Generation.objects.filter(conversation=OuterRef("conversation"))
_LAST_NUMBER = Subquery(_OWN.order_by("-number").values("number")[:1])


@dataclass(frozen=True, slots=True)
class Added:
    """What a request added: a turn's generations, in order. `is_new` is False when it had been answered before."""

    turn: Turn
    generations: Sequence[Generation]
    is_new: bool


def once(earlier: Callable[[], Added | None], add: Callable[[], Added]) -> Added:
    """
    Add something in one transaction, or give what the same request added meanwhile.

    The caller has looked for that before. Should it have been added since, it stands in the way in one way or
    another, at the latest as a key that is taken. So it is looked for again only where something does.
    """
    try:
        with transaction.atomic():
            return add()
    except (Problem, IntegrityError):
        found = earlier()
        if found is None:
            raise
        return found


def next_places(conversation: uuid.UUID) -> tuple[int, int]:
    """
    Give the next turn's index and the next generation's number. Call it with the conversation locked.

    The newest generation need not be of the newest turn: a pane that was left out since may be asked again.
    So each is looked for by its own index, which costs the same however long the conversation is.
    """
    newest = Turn.objects.filter(conversation=conversation).order_by("-index")
    for index, number in newest.values_list("index", _LAST_NUMBER)[:1]:
        return index + 1, number + 1
    return 0, 1
