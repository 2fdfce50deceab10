"""The corpora through the whole pipeline: nothing harmful comes out, and what is Markdown means what it should."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import TypeAlias
from xml.etree.ElementTree import Element

from markdown_it import MarkdownIt

from streaming.markdown import ALLOWED_TAGS, allowed, render
from streaming.markdown.links import is_allowed
from streaming.markdown.sanitize import bleached
from streaming.markdown.unchanged import is_unchanged_by_bleach
from tests.streaming.corpora import Example, Payload, examples, needs_corpora, payloads
from tests.streaming.markdown_page import Page, cut, faults, parsed, stream, whole

pytestmark = needs_corpora
# This file is large and repeats itself; so many of its payloads hold all its classes.
_SAMPLED = "vercel_markdown_bypass.json"
_SAMPLE = 300


def _chosen() -> list[Payload]:
    every = list(payloads())
    sampled = [payload for payload in every if payload.file == _SAMPLED]
    kept = random.Random(1).sample(sampled, min(_SAMPLE, len(sampled)))
    return [*kept, *(payload for payload in every if payload.file != _SAMPLED)]


def _first_faults(pages: list[tuple[Payload, list[str]]]) -> list[tuple[str, str, list[str]]]:
    checked: dict[str, list[str]] = {}
    found = []
    for payload, htmls in pages:
        for html in htmls:
            if html not in checked:
                checked[html] = faults(html)
            if checked[html]:
                found.append((payload.id, html, checked[html]))
    return found[:5]


def test_no_payload_gives_html_outside_the_allow_list() -> None:
    assert _first_faults([(payload, [whole(payload.text)]) for payload in payloads()]) == []


def test_no_payload_cut_in_two_gives_html_outside_the_allow_list() -> None:
    seeded = random.Random(2)
    pages = []
    for payload in _chosen():
        places = {seeded.randint(0, len(payload.text)) for _ in range(2)}
        for place in places:
            page = stream(cut(payload.text, [place]))
            pages.append((payload, [each.html for each in page.seen]))
    assert _first_faults(pages) == []


def test_a_payload_cut_in_pieces_ends_as_the_whole_does() -> None:
    seeded = random.Random(3)
    for payload in _chosen():
        places = [seeded.randint(0, len(payload.text)) for _ in range(8)]
        page = stream(cut(payload.text, places), step_ms=seeded.choice([0, 100, 300]))
        assert page.html == whole(payload.text), payload.id


def test_bleach_gives_back_what_is_called_unchanged() -> None:
    raw = {f"<p>{payload.text}</p>\n" for payload in payloads()}
    rendered = {block.html for payload in payloads() for block in render(payload.text)}
    called = [html for html in raw | rendered if is_unchanged_by_bleach(html)]
    assert [html for html in called if bleached(html) != html] == []
    assert len(called) > 1000


def test_every_example_streamed_by_character_ends_as_the_whole_does() -> None:
    for example in examples():
        assert _shown(stream(example.markdown), example) == whole(example.markdown), example.id


def _shown(page: Page, example: Example) -> str:
    assert page.shown == len(example.markdown), example.id
    return page.html


def test_examples_without_raw_html_and_images_have_the_structure_that_the_specification_gives() -> None:
    wrong = []
    tried = 0
    for example in filter(_applies, map(_with_absolute_links, examples())):
        tried += 1
        ours, theirs = (_tree(parsed(_without_additions(html))) for html in (whole(example.markdown), example.html))
        if ours != theirs:
            wrong.append((example.file, example.id, example.markdown, ours, theirs))
    assert wrong == []
    assert tried > 900


# Relative links are no links here, so the examples' are made absolute.
_RELATIVE = re.compile(r"(?<![\w/])/(?=ur[li]\b)")


def _with_absolute_links(example: Example) -> Example:
    markdown, html = (_RELATIVE.sub("https://example.com/", text) for text in (example.markdown, example.html))
    return replace(example, markdown=markdown, html=html)


# Where we differ on purpose, or a later revision of the specification does.
_OTHERWISE = {
    ("cmark_regression.json", "23"): "noncharacters become the replacement character",
    ("gfm_extensions.json", "8"): "a row's last cell holds what stands behind it: no word is lost",
    ("gfm_spec.json", "204"): "the same",
    ("gfm_extensions.json", "17"): "one tilde is no strikethrough: models write ~5 for about 5",
    ("gfm_extensions.json", "18"): "the same",
    ("gfm_extensions.json", "24"): "without a scheme nothing is an address",
    ("gfm_extensions.json", "25"): "the same",
}


def _applies(example: Example) -> bool:
    """Leave out what needs raw HTML, images, bare links, or links that are not allowed here."""
    if (example.file, example.id) in _OTHERWISE or example.extension in ("autolink", "tagfilter"):
        return False
    if _needs_html(example.markdown):
        return False
    tree = parsed(example.html)
    tags = {"del" if element.tag == "del" else str(element.tag) for element in tree.iter()}
    links = [element.get("href", "") for element in tree.iter("a")]
    return tags <= ALLOWED_TAGS | {"del", "DOCUMENT_FRAGMENT"} and all(is_allowed(link) for link in links)


def _needs_html(markdown: str) -> bool:
    with_html, without = (MarkdownIt("gfm-like", {"linkify": False, "html": html}) for html in (True, False))
    return bool(with_html.render(markdown) != without.render(markdown))


# We link bare addresses, which the specification leaves as text, and show info strings and unused definitions.
_OWN_LINK = re.compile(r'<a href="([^"]*)"[^>]*>\1</a>')
_OWN_PARAGRAPH = re.compile(r'<p class="(?:code-info|definition)".*?</p>', re.DOTALL)


def _without_additions(html: str) -> str:
    return _OWN_LINK.sub(r"\1", _OWN_PARAGRAPH.sub("", html))


_Tree: TypeAlias = "list[str | tuple[str, str, _Tree]]"


def _tree(element: Element, *, verbatim: bool = False) -> _Tree:
    """Give what counts of a tree: tags, link targets, list starts, languages, and text."""
    nodes: _Tree = []
    _add_text(nodes, element.text, verbatim=verbatim)
    for child in element:
        tag = {"del": "s"}.get(str(child.tag), str(child.tag))
        if tag == "span":
            # A colour stands for its text; a host is what we add to a link.
            _add_text(nodes, child.text if child.get("class") != "link-host" else "", verbatim=verbatim)
        else:
            nodes.append((tag, _detail(child), _tree(child, verbatim=verbatim or tag in ("pre", "code"))))
        _add_text(nodes, child.tail, verbatim=verbatim)
    return nodes


def _add_text(nodes: _Tree, text: str | None, *, verbatim: bool) -> None:
    text = text or ""
    text = text if verbatim else " ".join(text.split())
    if text and nodes and isinstance(nodes[-1], str):
        nodes[-1] += text
    elif text:
        nodes.append(text)


def _detail(element: Element) -> str:
    match element.tag:
        case "a":
            return element.get("href", "")
        case "ol":
            return element.get("start", "")
        case "code":
            language = element.get("class", "").lower()
            return language if allowed("code", "class", language) else ""
        case "td" | "th":
            return element.get("align") or element.get("class") or ""
        case _:
            return ""
