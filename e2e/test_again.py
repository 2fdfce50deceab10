"""A partial answer is offered again: whole, or gone on with."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from e2e.tap import Tap
from e2e.verbs import Chat

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_stopped_answer_can_be_asked_for_again_and_both_are_kept(chat: Chat, tap: Tap) -> None:
    await chat.ask("Again", "tap-a", "echo")
    await chat.begun(1)
    await chat.stop(1)
    await chat.is_in(1, "cancelled")
    partial = await chat.copied(1)
    await chat.pane(1).get_by_role("button", name="Retry").click()
    await chat.is_in(1, "running")
    tap.finish()
    await chat.settled()
    assert await chat.copied(1) != partial
    await chat.pane(1).get_by_role("button", name="Older").click()
    assert await chat.copied(1) == partial
    assert len(await chat.stored()) == 3


async def test_a_failed_answer_is_gone_on_with_as_an_answer_of_its_own(chat: Chat) -> None:
    await chat.ask("Go on", "error-midway", "echo")
    await chat.settled()
    await chat.is_in(1, "failed")
    before = await chat.copied(1)
    await chat.pane(1).get_by_role("button", name="Continue").click()
    await expect(chat.pane(1)).to_contain_text("2 of 2")
    await chat.settled()
    answers = await chat.person.answers(chat.conversation)
    assert [answer["continues"] for answer in answers] == [None, None, answers[0]["gen"]]
    assert answers[0]["text"] == before


async def test_five_retries_that_fail_are_five_ends_and_the_page_loads(chat: Chat) -> None:
    await chat.ask("Try", "error-midway", "echo")
    await chat.settled()
    for number in range(2, 7):
        await chat.pane(1).get_by_role("button", name="Retry").click()
        await expect(chat.pane(1)).to_contain_text(f"{number} of {number}")
        await chat.is_in(1, "failed")
    await chat.page.reload()
    await expect(chat.pane(1)).to_contain_text("6 of 6")
    await chat.is_in(1, "failed")
    assert [answer["state"] for answer in await chat.person.answers(chat.conversation)] == [
        "failed", "completed", *["failed"] * 5,
    ]  # fmt: skip
    await chat.choose("echo")
    await chat.send("And now?")
    await chat.shows(1, "And now?")
