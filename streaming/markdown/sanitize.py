"""The one allow-list, and the two sanitisers that it drives."""

from __future__ import annotations

import re

import nh3
from bleach.sanitizer import Cleaner

from streaming.markdown.clean import clean
from streaming.markdown.colour import PREFIX, TOKEN_CLASSES
from streaming.markdown.links import SCHEMES, is_allowed
from streaming.markdown.unchanged import is_unchanged_by_bleach

ALLOWED_SCHEMES = frozenset(SCHEMES)
_OUTERMOST = ("blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "table", "ul")
ALLOWED_ATTRIBUTES: dict[str, frozenset[str]] = {
    **{tag: frozenset({"dir"}) for tag in _OUTERMOST},
    "a": frozenset({"href", "rel", "target"}),
    "code": frozenset({"class"}),
    "li": frozenset({"value"}),
    "ol": frozenset({"dir", "start"}),
    "p": frozenset({"class", "dir"}),
    "pre": frozenset({"class"}),
    "span": frozenset({"class"}),
    "td": frozenset({"class"}),
    "th": frozenset({"class"}),
}
ALLOWED_TAGS = frozenset({*ALLOWED_ATTRIBUTES, "br", "em", "hr", "s", "strong", "tbody", "thead", "tr"})


def allowed(tag: str, name: str, value: str) -> bool:
    """Say whether an attribute may stay, by its tag, its name and its value."""
    if name not in ALLOWED_ATTRIBUTES.get(tag, ()):
        return False
    if name == "href":
        return is_allowed(value)
    return _VALUES[name, tag if name == "class" else ""].fullmatch(value) is not None


def sanitize(html: str, *, twice: bool) -> str:
    """Hold HTML against the allow-list: with nh3, and when `twice` with bleach after it if it could change anything."""
    html = _NH3.clean(clean(html))
    return html if not twice or is_unchanged_by_bleach(html) else bleached(html)


def bleached(html: str) -> str:
    """Give what bleach leaves of HTML."""
    # A cleaner for each call: bleach's is not safe to share between threads, and costs 35 µs.
    cleaner = Cleaner(tags=ALLOWED_TAGS, attributes=allowed, protocols=ALLOWED_SCHEMES, strip=True)
    return str(cleaner.clean(html))


def _kept(tag: str, name: str, value: str) -> str | None:
    return value if allowed(tag, name, value) else None


_VALUES = {
    ("class", "code"): re.compile(r"language-[a-z0-9_+#.-]{1,32}"),
    ("class", "p"): re.compile("code-info|definition"),
    ("class", "pre"): re.compile("plain"),
    ("class", "span"): re.compile(f"link-host|math(?: math-display)?|{PREFIX}[{''.join(TOKEN_CLASSES)}]"),
    ("class", "td"): re.compile("left|center|right"),
    ("class", "th"): re.compile("left|center|right"),
    ("dir", ""): re.compile("auto"),
    ("rel", ""): re.compile("noopener noreferrer nofollow"),
    ("start", ""): re.compile("[0-9]{1,9}"),
    ("target", ""): re.compile("_blank"),
    ("value", ""): re.compile("[0-9]{1,9}"),
}
_NH3 = nh3.Cleaner(
    tags=set(ALLOWED_TAGS),
    # The star is explicit: left out, nh3 would allow `title` and `lang` everywhere.
    attributes={"*": set(), **{tag: set(names) for tag, names in ALLOWED_ATTRIBUTES.items()}},
    attribute_filter=_kept,
    link_rel=None,  # It is part of the allow-list, and written with the link.
    url_schemes=set(ALLOWED_SCHEMES),
    url_relative="deny",
)
