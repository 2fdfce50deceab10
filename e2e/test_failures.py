"""Whatever a model service does wrong, its pane says it and keeps the text, and no other pane is touched."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, expect

from e2e.verbs import Chat, Person

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Model, error code, and what a person is told.
FAILURES = {
    "refused-port": ("connect_refused", "The model service is not running, or refuses connections."),
    "refuse-401": ("unauthorized", "The model service refused the key."),
    "refuse-429": ("rate_limited", "The model service takes no more requests for the moment."),
    "refuse-500": ("upstream_error", "The model service failed."),
    "no-such-host": ("dns_failure", "The address of the model service does not exist."),
    "html": ("not_a_stream", "The address answers, but not as a model service does."),
    "silent-soon-told": ("first_byte_timeout", "The model service accepted the prompt and then sent nothing."),
}
# These break off after some text.
BROKEN_OFF = {
    "half-json": ("incomplete_stream", "The answer broke off", "Half of it "),
    "cut-midway": ("incomplete_stream", "The answer broke off", "This answer ends before its"),
    "reset-midway": ("connection_lost", "The connection to the model service broke", "This answer loses its"),
    "error-midway": (
        "upstream_reported",
        "The model service reported an error in the middle of the answer.",
        "The first half of this answer arrives, and then the service ",
    ),
    "stalls-soon-told": (
        "idle_timeout",
        "The model service stopped sending in the middle of the answer.",
        "Let me think about that for a moment.",
    ),
}


@dataclass(frozen=True, slots=True)
class Failed:
    """What became of one model's answer."""

    state: str
    code: str
    stored: str
    notice: str
    copied: str
    said: str | None  # By the service, in the fold.


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def failed(session: BrowserContext) -> AsyncIterator[dict[str, Failed]]:
    """Ask all failing models at once, each time with one that works at their side."""
    person, page = Person(session.request), await session.new_page()
    found = {}
    for models in (list(FAILURES), list(BROKEN_OFF)):
        chat = Chat(page, person)
        await chat.open_asked("Fail", *models, "echo")
        await chat.settled()
        await expect(chat.notice(len(models) + 1)).to_be_hidden()
        assert (await chat.shown())[-1] == "Fail"
        answers = await person.answers(chat.conversation)
        for number, (model, answer) in enumerate(zip(models, answers, strict=False), 1):
            notice = await chat.notice(number).inner_text()
            copied = await chat.copied(number) if answer["text"] else ""
            said = await chat.pane(number).locator(".said__text").text_content()
            error = answer["error"]
            assert (error.get("said") or "") == said
            found[model] = Failed(answer["state"], error["code"], answer["text"], notice, copied, said)
    yield found
    await page.close()
    await person.leave()


@pytest.mark.parametrize("model", FAILURES)
async def test_a_failed_pane_says_what_is_wrong(failed: dict[str, Failed], model: str) -> None:
    code, sentence = FAILURES[model]
    assert (failed[model].state, failed[model].code) == ("failed", code)
    assert sentence in failed[model].notice


@pytest.mark.parametrize("model", BROKEN_OFF)
async def test_an_answer_that_breaks_off_keeps_its_text_and_is_marked_partial(
    failed: dict[str, Failed], model: str
) -> None:
    code, sentence, text = BROKEN_OFF[model]
    assert (failed[model].state, failed[model].code) == ("failed", code)
    assert (failed[model].stored, failed[model].copied) == (text, text)
    assert sentence in failed[model].notice
    assert "The text above is kept, and is partial." in failed[model].notice


async def test_what_the_service_said_stands_in_a_fold(failed: dict[str, Failed]) -> None:
    assert {model: one.said for model, one in failed.items() if one.said} == {
        "error-midway": "scripted failure",
        **dict.fromkeys(("refuse-401", "refuse-429", "refuse-500"), "refused by the script"),
    }


async def test_every_failure_has_a_sentence_of_its_own(failed: dict[str, Failed]) -> None:
    told: dict[str, set[str]] = {}
    for one in failed.values():
        told.setdefault(one.code, set()).add(one.notice.partition("\n")[2])
    assert len(set().union(*told.values())) == len(told)
