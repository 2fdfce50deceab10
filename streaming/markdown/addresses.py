"""Bare addresses, `https://…` and `http://…`, become links under the rules of all other links.

An address ends before a space, a quotation mark, `<` or `>`, a backtick, a bar, `**` or `~~`, a character reference
other than `&amp;`, a closing bracket that nothing in it opens, and every character beyond ASCII that is no letter, mark
or digit, so before all punctuation of Chinese and Japanese. A character of a script without spaces goes on with it only
behind another one or a delimiter: `…/wiki/中文` is one address, `…/docs了解更多` ends before 了. A host ends before
what cannot stand in one. Punctuation at the end stands outside. Without a scheme nothing is an address.
"""

from __future__ import annotations

import re
import unicodedata

from markdown_it.common.utils import unescapeAll
from markdown_it.rules_inline import StateInline

from streaming.markdown.links import MAX_HREF
from streaming.markdown.spaceless import SPACELESS_CLASS


def bare_address(state: StateInline, silent: bool) -> bool:
    """
    Parse a bare address: a rule of inline text, at the colon. Runs in linear time.

    What encloses it is parsed first: there are none in links, and none when the parser looks for the end of a label.
    """
    src, pos = state.src, state.pos
    if src[pos] != ":" or silent or state.linkLevel or not src.startswith("://", pos):
        return False
    start = _begin(src, pos)
    if start < 0 or len(state.pending) < pos - start:
        return False
    address = _address(src, start, state.posMax)
    text = unescapeAll(address)
    href = state.md.normalizeLink(text) if address else ""
    if not state.md.validateLink(href):
        return False
    state.pending = state.pending[: start - pos]
    state.push("link_open", "a", 1).attrs = {"href": href}
    state.push("text", "", 0).content = text
    state.push("link_close", "a", -1)
    state.pos = start + len(address)
    return True


def _begin(src: str, colon: int) -> int:
    """Find where the scheme before a colon begins; -1 if there is none, or it goes on with a word or an address."""
    for scheme in ("https", "http"):
        start = colon - len(scheme)
        if start >= 0 and src[start:colon].lower() == scheme:
            return -1 if start and _GOES_ON.match(src[start - 1]) else start
    return -1


def _address(src: str, start: int, end: int) -> str:
    """Give the address that begins at `start`; empty if there is none, or it is longer than any link may be."""
    if _HEAD.match(src, start, end) is None:
        return ""
    found = _RUN.match(src, start, min(end, start + MAX_HREF + 1))
    if found is None or len(found[0]) > MAX_HREF:
        return ""
    host = _HOST.match(found[0])
    run = host[0] if host else found[0]
    return run[: _end(run)].rstrip(_PUNCTUATION)


def _end(run: str) -> int:
    """Find a bracket that nothing opens, or a character beyond ASCII that is of no word."""
    opened = {")": 0, "]": 0, "}": 0}
    for i, char in enumerate(run):
        if close := _CLOSES.get(char):
            opened[close] += 1
        elif char in opened:
            opened[char] -= 1
            if opened[char] < 0:
                return i
        elif char >= "\x80" and unicodedata.category(char)[0] not in "LMN":
            return i
    return len(run)


_GOES_ON = re.compile(r"[A-Za-z0-9@/+]")
_PUNCTUATION = "?!.,:;*_~'\\"
_CLOSES = {"(": ")", "[": "]", "{": "}"}
# A host has a dot, or is this machine, or a port is named; the rest is judged as for all links.
_HEAD = re.compile(r"https?://(?:[^\s/?#:]{1,253}?\.[^\s/?#:.]|localhost(?![\w.-])|[\w.-]{1,253}:[0-9])", re.IGNORECASE)
# All of it when a character follows the host that can stand neither in one nor behind one. A name or password may: what
# has one is no link at all, and not one to what stands before it.
_HOST = re.compile(r"https?://[^/?#@()\[\]{},;!'*~=+$&]*+(?=[()\[\]{},;!'*~=+$&])(?![^/?#]*@)", re.IGNORECASE)
_PLAIN = r"[^\s<>\"`|&\\*~\x00-\x20\x7f" + SPACELESS_CLASS + "]"
_SPACELESS = f"(?<![A-Za-z0-9])[{SPACELESS_CLASS}]"
_ESCAPED = r"\\[!#$%&'()*+,\-./:;=?@\[\]^_{}]"
_REFERENCE = r"&amp;|&(?!#?\w{1,32};)"
_RUN = re.compile(rf"(?:{_PLAIN}++|{_SPACELESS}|\*(?!\*)|~(?!~)|{_REFERENCE}|{_ESCAPED})++")
