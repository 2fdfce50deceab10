"""Code → HTML with a few classes, the colours of which are in static/css/code.css.

Only kinds of words that help reading get a span, so that coloured code stays about twice its size.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from itertools import groupby

from pygments.lexers import get_all_lexers, get_lexer_by_name
from pygments.token import (
    Comment,
    Generic,
    Keyword,
    Literal,
    Name,
    Number,
    Operator,
    String,
    _TokenType,
)  # fmt: skip

# Class → what it means. The prefix keeps them apart from the page's own classes.
PREFIX = "tok-"
TOKEN_CLASSES = {
    "k": "keyword",
    "s": "string",
    "c": "comment",
    "n": "number or constant",
    "f": "name of a function or class",
    "b": "built-in name",
    "a": "attribute or decorator",
    "t": "tag or key",
    "i": "inserted",
    "d": "deleted",
    "h": "heading",
}

# Name in a fence → Pygments' name. A list of our own: Pygments would search installed plugins for a
# name it does not know, and only these lexers were timed on hostile input (tests/streaming).
LANGUAGES = {
    alias: name
    for name, aliases in {
        "bash": "bash sh shell zsh",
        "c": "c h",
        "console": "console shell-session",
        "cpp": "cpp c++ cc cxx hpp",
        "csharp": "csharp cs c#",
        "css": "css",
        "diff": "diff patch",
        "docker": "docker dockerfile",
        "go": "go golang",
        "html": "html xhtml",
        "http": "http",
        "ini": "ini cfg conf",
        "java": "java",
        "javascript": "javascript js jsx mjs node",
        "json": "json jsonc json5",
        "kotlin": "kotlin kt",
        "lua": "lua",
        "make": "make makefile",
        "perl": "perl pl",
        "php": "html+php php",
        "powershell": "powershell ps1 pwsh",
        "python": "python py python3",
        "ruby": "ruby rb",
        "rust": "rust rs",
        "scala": "scala",
        "sql": "sql sqlite mysql",
        "swift": "swift",
        "toml": "toml",
        "typescript": "typescript ts tsx",
        "xml": "xml svg",
        "yaml": "yaml yml",
    }.items()
    for alias in aliases.split()
}
_OTHER_LANGUAGES = frozenset(alias for _, aliases, _, _ in get_all_lexers(plugins=False) for alias in aliases)
# Above it the colours cost more time than the rest of the answer.
MAX_COLOURED = 8192
# Some lexers take quadratic time in a run of names without operators, or in the length of a line.
_DEAR = re.compile(r"[\w\s$@#&.<>?\[\]]{600}|[^\n]{1000}")


def is_language(name: str) -> bool:
    """Say whether anybody would know a lower-case word for the name of a language, coloured here or not."""
    return name in LANGUAGES or name in _OTHER_LANGUAGES


def coloured(code: str, language: str) -> str:
    """Give code as HTML; empty when the language is not known or the code too dear to colour."""
    name = LANGUAGES.get(language)
    if name is None or len(code) > MAX_COLOURED or _DEAR.search(code):
        return ""
    # A lexer for each call: some keep state, and threads may render at the same time.
    lexer = get_lexer_by_name(name, stripnl=False, ensurenl=False)
    words = [(_class_of(kind), text) for kind, text in lexer.get_tokens(code)]
    if "".join(text for _, text in words) != code:
        return ""
    return "".join(_span(kind, "".join(text for _, text in run)) for kind, run in groupby(words, _first))


def _first(word: tuple[str, str]) -> str:
    return word[0]


def _span(kind: str, text: str) -> str:
    body = escape(text, quote=False)
    return f'<span class="{PREFIX}{kind}">{body}</span>' if kind and not text.isspace() else body


@cache
def _class_of(kind: _TokenType) -> str:
    """Find the class of a kind of token, or of the nearest kind above it."""
    if kind in _CLASSES:
        return _CLASSES[kind]
    return _class_of(kind.parent) if kind.parent is not None else ""


_CLASSES: dict[_TokenType, str] = {
    Comment: "c",
    Comment.Preproc: "a",
    Generic.Deleted: "d",
    Generic.Heading: "h",
    Generic.Inserted: "i",
    Generic.Prompt: "c",
    Generic.Subheading: "h",
    Keyword: "k",
    Keyword.Constant: "n",
    Literal.Date: "n",
    Name.Attribute: "a",
    Name.Builtin: "b",
    Name.Class: "f",
    Name.Constant: "n",
    Name.Decorator: "a",
    Name.Exception: "b",
    Name.Function: "f",
    Name.Tag: "t",
    Number: "n",
    Operator.Word: "k",
    String: "s",
    String.Interpol: "",
}
