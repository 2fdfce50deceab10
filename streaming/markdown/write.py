"""Tokens → HTML, in the words of our allow-list."""
# ruff: noqa: ARG002
# The parser's renderer calls every rule with the same four arguments.

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from markdown_it.common.utils import mdTrim, unescapeAll
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from streaming.markdown.colour import coloured, is_language
from streaming.markdown.formulas import is_display
from streaming.markdown.links import shows, target


class HtmlWriter(RendererHTML):
    """
    The parser's renderer, with our links, images, code, formulas and tables.

    `env["coloured"]` says whether code gets its colours. A token whose meta holds "outermost" gets
    `dir="auto"`; an element inside needs none, and would hide its text from the outer one's search.
    """

    def renderToken(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: N802
        token = tokens[idx]
        if token.meta.get("outermost") and token.nesting == 1:
            token.attrSet("dir", "auto")
        return super().renderToken(tokens, idx, options, env)

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        href = str(token.attrGet("href") or "")
        shown = None if token.meta.get("inside_link") else target(href)
        if shown is None:
            return ""
        close, text = _link_text(tokens, idx)
        tokens[close].meta["link_end"] = _link_end(text, href, shown)
        return _link_start(href)

    def link_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return str(tokens[idx].meta.get("link_end", ""))

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """An image is a link to it: nothing is fetched by itself. Inside a link it is its text only."""
        token = tokens[idx]
        text = _text_of(token)
        href = str(token.attrGet("src") or "")
        shown = target(href)
        if shown is None or token.meta.get("inside_link"):
            return escape(text)
        return _link_start(href) + escape(text) + _link_end(text, href, shown)

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return fence_html(tokens[idx].info, tokens[idx].content, in_colour=bool(env["coloured"]))

    def math(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        source = tokens[idx].content
        kind = "math math-display" if is_display(source) else "math"
        return f'<span class="{kind}">{escape(source, quote=False)}</span>'

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return fence_html("", tokens[idx].content, in_colour=False)

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return _cell("th", tokens[idx])

    def td_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return _cell("td", tokens[idx])


def fence_html(info: str, code: str, *, in_colour: bool) -> str:
    """Give a code block. Its class names the language; an info string that is no such name stands above it."""
    info = mdTrim(unescapeAll(info))
    language = _language_of(info)
    told = info.lower().removeprefix("language-") == language and is_language(language)
    caption = "" if told or not info else f'<p class="code-info">{escape(info, quote=False)}</p>\n'
    kind = f' class="language-{language}"' if language else ""
    body = (in_colour and coloured(code, language)) or escape(code, quote=False)
    return f"{caption}<pre><code{kind}>{body}</code></pre>\n"


def plain_html(source: str) -> str:
    """Give text past a cap: as it came, and a class that says so."""
    return f'<pre class="plain">{escape(source, quote=False)}</pre>\n'


def _language_of(info: str) -> str:
    """Give the language that a fence names, if it is a word that may stand in a class."""
    word = next(iter(info.split()), "").lower().removeprefix("language-")
    return word if _LANGUAGE.fullmatch(word) else ""


def _link_start(href: str) -> str:
    return f'<a href="{escape(href)}" rel="noopener noreferrer nofollow" target="_blank">'


def _link_end(text: str, href: str, shown: str) -> str:
    host = "" if shows(text, href, shown) else f' <span class="link-host">({escape(shown)})</span>'
    return f"{host}</a>"


def _link_text(tokens: Sequence[Token], opened: int) -> tuple[int, str]:
    """Find where a link closes and what it says. What else leads somewhere is marked: no link in a link."""
    said: list[str] = []
    close, depth = opened, 1
    while depth:
        close += 1
        token = tokens[close]
        depth += token.nesting if token.type in ("link_open", "link_close") else 0
        token.meta["inside_link"] = True
        said.append(_text_of(token) if token.type == "image" else token.content)
    return close, "".join(said)


def _text_of(image: Token) -> str:
    return "".join(map(_words_of, image.children or [])) or "image"


def _words_of(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return _text_of(token) if token.type == "image" else token.content


def _cell(tag: str, token: Token) -> str:
    side = str(token.attrGet("style") or "").removeprefix("text-align:")
    return f'<{tag} class="{side}">' if side else f"<{tag}>"


_LANGUAGE = re.compile(r"[a-z0-9_+#.-]{1,32}")
