"""Whatever people and models write, an export has its own structure and no other, and their text is unchanged."""

from __future__ import annotations

import csv
import re
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from chatapp.borders import bordered, plain
from chatapp.export_csv import csv_of
from chatapp.export_markdown import markdown_of
from chatapp.exported import Answer, Exported
from chatapp.models import Conversation, Generation, Turn

# As strict as the standard, and as generous as the sites that people paste an export into.
READERS = [MarkdownIt("commonmark", {"maxNesting": 200}).enable(more) for more in ([], ["table", "strikethrough"])]
CLOSERS = ["```", "~~~", "-->", "</details>", "</script>", "]]>"]
HOSTILE = [
    "```", "````", "~~~", "```python", "# Title", "## Prompt", "### GPT-5", "Title\n===", "Title\n---", "---", "***",
    "<!--", "<details>", "<script>", "<style>", "<div", "<pre>", "<plaintext>", "<?php", "<![CDATA[", "<a href='x'>",
    "a <!-- b", "a <b>bold", "<https://example.org>", "&lt;!--", "\\<!--", "`<!--`", "`` ` <b> ``",
    "[1]: https://evil.example", "[1]", "[text][1]", "[a\nb]: /x", "> [1]: /y", "- [1]: /z", "[^1]: a note", "[^1]",
    "- item", "1. item", "- - - item", "    code", "\tcode", "> quote", ">>>> quote", ">", "| a | b |\n|---|---|",
    "| `a | b` <i> |", "*open", "**open", "[open", "![image](x", "$$", "%%", "%%hidden%%", "\\", "  ", "", " " * 6,
    "x\\\r\ny", "\rz", "\u2028# Title", "\x0c# Title", "\N{NO-BREAK SPACE}", "*[HTML]: abbreviation", ": definition",
    *CLOSERS,
]  # fmt: skip
texts = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=8), max_size=8).flatmap(
    lambda lines: st.sampled_from(["\n", "\n\n", " ", "\r\n"]).map(lambda end: end.join(lines))
)
names = st.sampled_from(HOSTILE) | st.text(max_size=30)


def normal(text: str) -> str:
    return re.sub(r"\r\n?", "\n", text)


def exported(title: str, prompt: str, label: str, answers: list[str]) -> Exported:
    rows = [
        Generation(text=text, model=label, number=n, finish=label, state="completed")
        for n, text in enumerate(answers, 1)
    ]
    made = [Answer(row, label, number, (f"its state is {label!r}",)) for number, row in enumerate(rows, 1)]
    return Exported(Conversation(title=title), [(Turn(prompt=prompt), made)] * 2, partial=True)


def top_level(tokens: list[Token]) -> list[str]:
    return [f"{token.type} {token.tag}".strip() for token in tokens if token.level == 0 and token.nesting >= 0]


def borders(text: str) -> list[str]:
    return [kind.split(" ")[0] for kind in top_level(READERS[0].parse(bordered(text)))]


def headings(tokens: list[Token]) -> list[str]:
    """Give the export's own headings as a reader sees them."""
    own = [tokens[at + 1] for at, token in enumerate(tokens) if token.type == "heading_open" and token.level == 0]
    return ["".join(child.content for child in token.children or ()) for token in own]


def everything(tokens: list[Token]) -> list[Token]:
    return [one for token in tokens for one in (token, *(token.children or ()))]


@given(names, texts, names, st.lists(texts, min_size=1, max_size=3))
def test_an_export_has_its_own_structure_and_no_other(title: str, prompt: str, label: str, answers: list[str]) -> None:
    document = markdown_of(exported(title, prompt, label, answers))
    quotes = [
        kind for text in answers for kind in (*["heading_open h3", "paragraph_open p"], "border", "paragraph_open p")
    ]
    structure = ["heading_open h1", *(["heading_open h2", "border", *quotes] * 2)]
    for reader in READERS:
        found: dict[str, object] = {}
        tokens = reader.parse(document, found)
        borders = ("blockquote_open blockquote", "fence code")
        assert ["border" if kind in borders else kind for kind in top_level(tokens)] == structure
        assert not found.get("references")
        assert [one.content for one in everything(tokens) if one.type in ("html_block", "html_inline")] == []
        told = headings(tokens)
        assert told[1] == told[2 + len(answers)] == "Prompt"
        assert len(told) == 1 + 2 * (1 + len(answers))


@given(texts)
def test_a_text_is_in_its_borders_unchanged(text: str) -> None:
    lines = bordered(text).split("\n")
    inside = lines[1:-1] if lines[0].startswith("`") else [line.removeprefix(">").removeprefix(" ") for line in lines]
    kept = "\n".join(inside)
    # Of a quote's empty line nothing is said, so that nothing follows its mark.
    assert kept == normal(text)


@given(names)
def test_a_name_is_shown_as_it_is_and_means_nothing(name: str) -> None:
    tokens = READERS[1].parse(f"# x{plain(name)}x\n\n[1]: /evil")
    (heading,) = headings(tokens)
    shown = heading.removeprefix("x").removesuffix("x")
    children = [child.type for child in tokens[1].children or ()]
    assert set(children) <= {"text", "text_special"}
    assert shown.isprintable() or not name.isprintable()


@pytest.mark.parametrize(
    "text", ["Good **morning**", "# A title\n\n- a list", "```html\n<!-- code -->\n", "a < b", "<https://a.example>"]
)
def test_what_a_quote_holds_is_rendered(text: str) -> None:
    assert borders(text) == ["blockquote_open"]


@pytest.mark.parametrize(
    "text",
    [
        "<!-- a",
        "a<br>b",
        "[1]: /x",
        "> - [1]: /x",
        "[^1]: note",
        "x[^1]: y",
        "%%",
        "> " * 70 + "deep]:",
        "<div",
        "[1]: /x " * 20_000,
    ],
)
def test_what_reaches_beyond_a_quote_is_shown_as_source(text: str) -> None:
    assert borders(text) == ["fence"]


def test_no_fence_inside_ends_the_border() -> None:
    assert borders("<!--\n```\n`````\n~~~\n") == ["fence"]


@given(names, texts, names, st.lists(texts, min_size=1, max_size=3))
def test_a_spreadsheet_computes_nothing_and_loses_nothing(
    title: str, prompt: str, label: str, answers: list[str]
) -> None:
    written = csv_of(exported(title, prompt, label, answers)).removeprefix("\ufeff")
    rows = list(csv.DictReader(StringIO(written, newline=""), strict=True))
    assert [row["text"].removeprefix("'") for row in rows] == [text.removeprefix("'") for text in answers] * 2
    assert not [cell for row in rows for cell in row.values() if re.match(r"\s*[=+\-@＝＋－＠]|[\t\r\n]", cell)]


@pytest.mark.parametrize(
    "cell",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        " =1",
        "＝1",
        '=HYPERLINK("x")',
        "\N{NO-BREAK SPACE}=1",
        "\N{ZERO WIDTH SPACE}=1",
        "\ufeff=1",
        "\N{RIGHT-TO-LEFT OVERRIDE} =1",
        "\x1b=1",
        "\x7f-1",
        "\N{SMALL PLUS SIGN}1",
    ],
)
def test_a_cell_that_would_be_computed_gets_an_apostrophe(cell: str) -> None:
    written = csv_of(exported("t", cell, "Model", ["x"])).removeprefix("\ufeff")
    first = next(csv.DictReader(StringIO(written, newline="")))
    assert first["prompt"] == f"'{cell}"
