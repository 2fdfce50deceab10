"""Panes share nothing but the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from e2e.catalogue import CAREFUL
from e2e.tap import Tap
from e2e.verbs import Chat, until

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("transport", ["socket", "sse"])
async def test_eight_panes_come_over_one_connection(chat: Chat, transport: str) -> None:
    opened: list[str] = []
    chat.page.on("websocket", lambda socket: opened.append(socket.url))
    chat.page.on("request", lambda one: opened.append(one.url) if one.resource_type == "eventsource" else None)
    await chat.open_asked("Together", *["echo"] * 8, transport=transport)
    await chat.settled()
    assert await chat.shown() == ["Together"] * 8
    assert len(opened) == 1


async def test_a_slow_pane_holds_back_no_other(chat: Chat) -> None:
    await chat.ask("Quick now", "slow", "silent", "echo", "never-opens")
    await chat.is_in(3, "completed")
    states = await chat.page.locator(".pane").evaluate_all("panes => panes.map((pane) => pane.dataset.state)")
    assert states == ["running", "running", "completed", "running"]


async def test_the_same_scripted_model_twice_never_mixes(chat: Chat) -> None:
    """Only the same prompt can go to two panes of a turn, so different ones go to two conversations of one model."""
    prompts = [f"{letter}1 {letter}2 {letter}3 " * 50 for letter in "abcdef"]
    asked = await asyncio.gather(*(chat.person.ask(prompt, "echo", "echo") for prompt in prompts))
    for conversation, prompt in zip(asked, prompts, strict=True):
        await chat.open(conversation)
        await chat.settled()
        assert [await chat.copied(number) for number in (1, 2)] == [prompt, prompt]


async def test_two_panes_that_drip_at_once_never_mix(chat: Chat, tap: Tap) -> None:
    await chat.ask("Drip", "tap-a", "tap-b")
    await chat.begun(1, 2)
    tap.finish()
    await chat.settled()
    assert [await chat.copied(number) for number in (1, 2)] == [tap.said["tap-a"], tap.said["tap-b"]]


async def test_one_real_model_in_two_panes_with_two_temperatures_gives_two_answers(chat: Chat) -> None:
    await chat.page.goto("/")
    await chat.choose(CAREFUL, CAREFUL)
    for number, temperature in enumerate(("0", "1.8")):
        choice = chat.page.locator(f".choice >> nth={number}")
        await choice.locator("summary").click()
        await choice.get_by_label("Temperature").fill(temperature)
        await choice.get_by_label("Max tokens").fill("40")
        await chat.page.keyboard.press("Escape")
    await chat.send("Invent a name for a ship and say why.")
    await chat.page.wait_for_url("**/c/*")
    chat.person.conversations.add(chat.conversation)
    await chat.settled()
    careful, lively = await chat.stored()
    assert [await chat.copied(1), await chat.copied(2)] == [careful, lively]
    assert careful != lively


async def test_eight_tabs_of_one_conversation_are_all_live(new_tab: Callable[[], Awaitable[Chat]], tap: Tap) -> None:
    """A browser makes six plain connections to a host: a page that held one of them open would stop the seventh tab."""
    tabs = [await new_tab() for _ in range(8)]
    await tabs[0].ask("Drip", "tap-a")
    for tab in tabs[1:]:
        await tab.open(tabs[0].conversation)
    tap.finish()
    for tab in tabs:
        await tab.page.bring_to_front()
        await tab.settled()
        assert await tab.copied(1) == tap.said["tap-a"]


async def test_two_conversations_in_two_tabs_never_mix(new_tab: Callable[[], Awaitable[Chat]], tap: Tap) -> None:
    first, second = await new_tab(), await new_tab()
    await first.ask("Drip", "tap-a")
    await second.ask("Drip", "tap-b")
    await second.begun(1)
    tap.finish()
    for tab, model in ((first, "tap-a"), (second, "tap-b")):
        await tab.page.bring_to_front()
        await tab.settled()
        assert await tab.copied(1) == tap.said[model]


async def test_going_round_between_conversations_loses_nothing(chat: Chat, tap: Tap) -> None:
    conversations = [await chat.person.ask("Drip", model) for model in ("tap-a", "tap-b")]
    for conversation in conversations * 2:
        await chat.open(conversation)
        await chat.begun(1)
    tap.finish()
    for conversation, model in zip(conversations, ("tap-a", "tap-b"), strict=True):
        await chat.open(conversation)
        await chat.settled()
        assert await chat.copied(1) == tap.said[model]


async def test_the_header_says_what_the_server_measured(chat: Chat) -> None:
    await chat.ask("Measure this answer", "echo")
    await chat.settled()
    await chat.pane(1).locator(".pane__timings summary").click()

    async def rows() -> bool:
        names = await chat.pane(1).locator(".pane__rows dt").all_inner_texts()
        return {"Started", "Connected", "First token", "Last token", "Ended", "Longest gap"} <= set(names)

    await until(rows)
