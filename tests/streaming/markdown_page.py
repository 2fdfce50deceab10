"""What the Markdown tests share: a page that takes views, and a real HTML parser's eye on the result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element

import html5lib
from hypothesis import settings

from streaming.markdown import ALLOWED_ATTRIBUTES, ALLOWED_SCHEMES, ALLOWED_TAGS, BlockRenderer, Rendered, render

# Other processes share the machine: a slow example is no fault.
untimed = settings(deadline=None)
# Said here once more, in another way than in clean.py: C0 and C1 controls, zero-width and bidi
# controls, tags, supplementary variation selectors, fillers, annotation, surrogates.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\u3164\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\U000e0100-\U000e01ef\ud800-\udfff]"
)


class Page:
    """Keeps blocks as a browser would, and refuses what a browser was promised not to see."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.sealed: list[bool] = []
        self.shown = 0
        self.ends: list[int] = []  # Each block's length.
        self.seen: list[Rendered] = []  # All that was ever shown.

    @property
    def html(self) -> str:
        return "".join(self.blocks)

    def apply(self, rendered: Iterable[Rendered], *, finishing: bool = False) -> None:
        for each in rendered:
            assert each.index <= len(self.blocks), "blocks come without holes"
            if each.index == len(self.blocks):
                self.blocks.append("")
                self.sealed.append(False)
                self.ends.append(0)
            assert finishing or not self.sealed[each.index], "a sealed block does not change while text comes"
            self.blocks[each.index], self.sealed[each.index] = each.html, each.sealed
            self.shown = self.ends[each.index] = each.length
            self.seen.append(each)


def stream(pieces: Iterable[str], step_ms: int = 300) -> Page:
    """Render pieces as they come, `step_ms` apart."""
    page, renderer = Page(), BlockRenderer()
    for i, piece in enumerate(pieces):
        renderer.feed(piece)
        page.apply(renderer.views(i * step_ms))
    page.apply(renderer.finish(), finishing=True)
    return page


def whole(text: str) -> str:
    return "".join(block.html for block in render(text))


def cut(text: str, at: Iterable[int]) -> list[str]:
    """Cut a text at the given places."""
    places = [0, *sorted({min(place, len(text)) for place in at}), len(text)]
    return [text[a:b] for a, b in pairwise(places) if a < b]


def parsed(html: str) -> Element:
    """Parse as a browser does when it inserts HTML into an element."""
    root = html5lib.parseFragment(html, container="div", treebuilder="etree", namespaceHTMLElements=False)
    assert isinstance(root, Element)
    return root


def text_of(html: str) -> str:
    return "".join(parsed(html).itertext())


def faults(html: str) -> list[str]:
    """Say what in this HTML is not allowed: tags, attributes, schemes, hidden hosts, unseen characters."""
    found = [f"unseen character {match[0]!r}" for match in _UNSEEN.finditer(html)]
    for element in parsed(html).iter():
        if element.tag == "DOCUMENT_FRAGMENT":
            continue
        if element.tag not in ALLOWED_TAGS:
            found.append(f"tag {element.tag}")
            continue
        extra = set(element.attrib) - ALLOWED_ATTRIBUTES.get(str(element.tag), frozenset())
        found += [f"attribute {name} of {element.tag}" for name in extra]
        if element.tag == "a":
            found += _link_faults(element)
    return found


def _link_faults(link: Element) -> Iterator[str]:
    if "href" not in link.attrib:
        yield "a link without a target"
        return
    url = urlsplit(link.attrib["href"])
    if url.scheme not in ALLOWED_SCHEMES:
        yield f"scheme {url.scheme!r}"
    if link.get("target") != "_blank" or link.get("rel") != "noopener noreferrer nofollow":
        yield "a link that gives away its opener"
    where = url.path if url.scheme == "mailto" else url.hostname
    if not where or where not in "".join(link.itertext()).lower() + "".join(link.itertext()):
        yield f"a link that hides {where!r}"
