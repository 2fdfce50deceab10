"""What a model is told of earlier turns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chatapp.history import BYTES_PER_TOKEN, CUT_MARK, GO_ON, TOKENS_PER_MESSAGE, Exchange, messages
from streaming.upstream.ports import Message

texts = st.lists(st.text(min_size=1, max_size=40), max_size=3)
exchanges = st.lists(
    st.builds(Exchange, st.text(max_size=40), st.text(max_size=40), st.booleans(), texts.map(tuple)), max_size=8
)


def contents(*args: object, **kwargs: object) -> list[str]:
    return [message.content for message in messages(*args, **kwargs)]  # type: ignore[arg-type]


def cost(told: tuple[Message, ...]) -> int:
    return sum(TOKENS_PER_MESSAGE + -(-len(m.content.encode()) // BYTES_PER_TOKEN) for m in told)


def test_a_first_prompt_stands_alone() -> None:
    assert messages("", [], "Hello", None) == (Message("user", "Hello"),)


def test_system_prompt_and_earlier_turns_come_before_the_prompt() -> None:
    told = messages("Be brief.", [Exchange("Hi", "Hello!", whole=True)], "Bye", None)
    roles = [message.role for message in told]
    assert roles == ["system", "user", "assistant", "user"]


def test_an_answer_that_was_cut_is_marked() -> None:
    assert contents("", [Exchange("Hi", "Hel", whole=False)], "Again", None)[1] == f"Hel{CUT_MARK}"


def test_a_turn_without_an_answer_is_left_out_with_its_prompt() -> None:
    assert contents("", [Exchange("Hi", "", whole=False)], "Again", None) == ["Again"]


def test_the_oldest_turns_go_first() -> None:
    told = [Exchange("one", "1" * 300, whole=True), Exchange("two", "2", whole=True)]
    assert contents("", told, "three", 60) == ["two", "2", "three"]


def test_the_prompt_is_kept_however_small_the_budget() -> None:
    assert contents("Be brief.", [Exchange("Hi", "Hello!", whole=True)], "x" * 500, 1) == ["Be brief.", "x" * 500]


@given(exchanges, st.text(max_size=40), st.integers(0, 300))
def test_history_never_breaks_the_budget(earlier: list[Exchange], prompt: str, budget: int) -> None:
    told = messages("", earlier, prompt, budget)
    assert len(told) == 1 or cost(told) <= budget


@given(exchanges, st.text(max_size=40), st.integers(0, 300) | st.none())
def test_user_and_assistant_take_turns(earlier: list[Exchange], prompt: str, budget: int | None) -> None:
    roles = [message.role for message in messages("", earlier, prompt, budget)]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]


@given(exchanges, texts, st.integers(0, 400))
def test_person_and_model_take_turns_whatever_is_continued(
    earlier: list[Exchange], to_continue: list[str], budget: int
) -> None:
    roles = [message.role for message in messages("", earlier, "Hello", budget, to_continue=to_continue)]
    assert roles == [("user", "assistant")[place % 2] for place in range(len(roles))]
    assert roles[-1] == "user"


@given(exchanges, texts, st.integers(0, 400))
def test_what_is_to_be_continued_is_told_whatever_the_budget(
    earlier: list[Exchange], to_continue: list[str], budget: int
) -> None:
    told = contents("", earlier, "Hello", budget, to_continue=to_continue)
    wanted = ["Hello", *(text for answer in to_continue for text in (answer, GO_ON))]
    assert told[-len(wanted) :] == wanted


@given(texts)
def test_only_the_last_part_of_a_continued_answer_is_marked_as_cut(parts: list[str]) -> None:
    told = contents("", [Exchange("Hi", "Once", False, tuple(parts))], "And then?", None)
    assert told[1:-1:2] == [*["Once", *parts][:-1], ["Once", *parts][-1] + CUT_MARK]
