"""What a model may write to do harm, in the real page: no script, no request, nothing unlisted in the DOM."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, Page

from e2e.catalogue import hostile_models, hostile_payloads
from e2e.complaints import Complaints
from e2e.verbs import Chat, Person, until
from streaming.markdown import ALLOWED_ATTRIBUTES, ALLOWED_SCHEMES, ALLOWED_TAGS, BlockRenderer, render
from tests.streaming.corpora import CORPORA, needs_corpora, payloads

pytestmark = pytest.mark.asyncio(loop_scope="session")

FILES = sorted({payload.file for payload in payloads()}) if CORPORA.is_dir() else ["no corpora"]
# Each payload is also cut into two deltas, at every place if it is short and the file has few.
MOST_CUTS, CUTS_OF_A_FILE = 24, 10_000
BATCH = 400

# What the page itself puts around an answer's blocks, for reading and for the keyboard.
_OF_THE_PAGE = ("pre tabindex", "pre role", "pre aria-label")
# Says what is in the blocks of the answers, bars over code left out, as the browser understands it.
_CENSUS = """() => {
  const found = new Set();
  for (const one of document.querySelectorAll("answer-body > * *:not(.code-bar, .code-bar *)")) {
    found.add(one.localName);
    for (const { name } of one.attributes) found.add(`${one.localName} ${name}`);
    if (one.namespaceURI !== "http://www.w3.org/1999/xhtml") found.add(`namespace ${one.namespaceURI}`);
    if (one.localName === "a") found.add(`scheme ${(one.protocol ?? "none").replace(":", "")}`);
  }
  return [...found];
}"""
# Puts blocks into the page as an answer's own element does, by the one way in which HTML may enter.
_PAINT = """async (htmls) => {
  window.harness?.remove();
  window.harness = document.createElement("answer-body");
  document.querySelector(".conversation__turns").append(window.harness);
  window.harness.paint({ blocks: htmls.map((html) => ({ html, sealed: true })), text: "", shownUnits: 0 });
  for (let frames = 0; frames < 2; frames += 1) await new Promise((done) => requestAnimationFrame(done));
}"""


def unlisted(census: Sequence[str]) -> list[str]:
    listed = {*ALLOWED_TAGS, *_OF_THE_PAGE, *(f"scheme {scheme}" for scheme in ALLOWED_SCHEMES)}
    listed |= {f"{tag} {name}" for tag, names in ALLOWED_ATTRIBUTES.items() for name in names}
    return sorted(set(census) - listed)


async def painted(page: Page, htmls: Sequence[str]) -> list[str]:
    """Paint blocks into the page; give what is unlisted in its DOM then."""
    await page.evaluate(_PAINT, htmls)
    return unlisted(await page.evaluate(_CENSUS))


def blocks_of(file: str) -> list[str]:
    """Give the HTML of every block that is ever shown while the payloads of a file come whole, or in two deltas."""
    chance = random.Random(file)
    texts = [payload.text for payload in payloads() if payload.file == file]
    most = min(MOST_CUTS, CUTS_OF_A_FILE // len(texts))
    found: dict[str, None] = {}
    for text in texts:
        found |= dict.fromkeys(block.html for block in render(text))
        for at in chance.sample(range(1, len(text)), min(most, len(text) - 1)) if len(text) > 1 else ():
            found |= dict.fromkeys(_in_two(text, at))
    return list(found)


def _in_two(text: str, at: int) -> list[str]:
    renderer = BlockRenderer()
    renderer.feed(text[:at])
    shown = renderer.views(0)
    renderer.feed(text[at:])
    shown += renderer.views(1000)
    return [block.html for block in [*shown, *renderer.finish()]]


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def stage(session: BrowserContext) -> AsyncIterator[tuple[Page, Complaints]]:
    """Give a conversation's page, under its policy, and all that it complains of."""
    person, page, complaints = Person(session.request), await session.new_page(), Complaints()
    complaints.listen(page)
    chat = Chat(page, person)
    await chat.ask("Stage", "echo")
    await chat.settled()
    yield page, complaints
    await page.close()
    await person.leave()


async def test_the_net_is_not_torn(chat: Chat, complaints: Complaints) -> None:
    """What these tests look for would be found, if anything let it through."""
    complaints.announce("")
    await chat.ask("Stage", "echo")
    bad = '<img src="http://stranger.invalid/x.png" onerror="alert(1)"><svg><a href="javascript:alert(2)">x</a></svg>'
    found = await painted(chat.page, [bad, '<a href="data:text/html,x">y</a>'])
    assert {"img", "img onerror", "svg", "namespace http://www.w3.org/2000/svg", "scheme data"} <= set(found)

    async def is_heard() -> bool:
        return {"console", "stranger"} <= {one.partition(":")[0] for one in complaints.heard}

    await until(is_heard)


@needs_corpora
@pytest.mark.parametrize("file", FILES)
async def test_payloads_bring_nothing_unlisted_into_the_page(stage: tuple[Page, Complaints], file: str) -> None:
    page, complaints = stage
    htmls = blocks_of(file)
    assert htmls
    for start in range(0, len(htmls), BATCH):
        assert await painted(page, htmls[start : start + BATCH]) == []
    assert complaints.heard == []


@needs_corpora
async def test_hostile_answers_come_through_the_whole_product_as_harmless_text(chat: Chat) -> None:
    texts, models = [one.text for one in hostile_payloads()], list(hostile_models())
    for start in range(0, len(models), 8):
        await chat.open_asked("Do harm", *models[start : start + 8])
        await chat.settled()
        assert await chat.stored() == texts[start : start + 8]
        assert unlisted(await chat.page.evaluate(_CENSUS)) == []
        await chat.page.reload()
        assert unlisted(await chat.page.evaluate(_CENSUS)) == []
