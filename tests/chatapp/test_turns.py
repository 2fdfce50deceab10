"""A turn that was added by the same request after that had been looked for: by another tab, a moment before."""

from __future__ import annotations

import uuid

import pytest

from chatapp.asking import Added
from chatapp.database import in_database
from chatapp.errors import Problem
from chatapp.models import Conversation, Turn
from chatapp.owners import Owner
from chatapp.parsing import NewTurn, PaneChoice
from chatapp.store import DjangoStore
from chatapp.turns import add_turn
from chatapp.wiring import offer
from tests.chatapp.making import a_conversation, a_whole_answer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]

OWNER = Owner(guest="g1")
WANTED = NewTurn("Hello", (PaneChoice(uuid.UUID(int=7), "echo"),), "k1")


@pytest.fixture
async def conversation() -> Conversation:
    return await in_database(a_conversation, OWNER.guest)


async def add(conversation: Conversation, wanted: NewTurn = WANTED) -> Added:
    return await in_database(add_turn, OWNER, conversation.pk, wanted, offer().effective_params)


async def test_it_is_given_while_its_answers_are_written(conversation: Conversation) -> None:
    first, again = await add(conversation), await add(conversation)
    assert (again.turn, again.generations, again.is_new) == (first.turn, first.generations, False)


async def test_it_is_given_when_nothing_but_its_key_stands_in_the_way(conversation: Conversation) -> None:
    first = await add(conversation)
    gen = str(first.generations[0].pk)
    assert await DjangoStore(offer).finish(gen, 1, a_whole_answer(gen))
    assert (await add(conversation)).turn == first.turn
    assert await Turn.objects.acount() == 1


async def test_its_key_is_refused_to_another_before_anything_else_is(conversation: Conversation) -> None:
    await add(conversation)
    with pytest.raises(Problem) as refused:
        await add(conversation, NewTurn("Other", (PaneChoice(uuid.UUID(int=7), "no such model"),), WANTED.key))
    assert refused.value.code == "key_reused"
