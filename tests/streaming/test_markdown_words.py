"""Every word that a model said can be read in what is shown, or reached from it, and no two run together.

Three kinds of words are left out by decision 3: titles of links and images, which are tooltips and lie; the labels of
link references that are used; and the address of an image inside a link. Copy and export have them.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streaming.markdown.colour import is_language
from tests.streaming.markdown_page import parsed, stream, text_of, untimed, whole

_PIECES = [
    "*", "**", "_", "~~", "`", "``", "- ", "1. ", "7) ", "1234567890. ", "> ", "# ", "#", "\n", "\n\n", "  \n", "\\\n",
    " ", "    ", "\t", "[", "]", "(", ")", "!", "![", "](https://a.example)", "](b)", "]: https://a.example",
    "<https://a.example>", "https://a.example/", "<", ">", "<b>", "<!--", "-->", "&", "&amp;", "&lt;", "&#12;",
    "&zwnj;", "\\", "|", "|\n|-|\n", "|a|b|\n|-|-|\n|", "---", "===", "```", "~~~~", "```py ", "~~~{", "\\(", "\\)",
    "\\[", "\\]", "$", "$$", "\\begin{a}", "\\end{a}", "[ ] ", "[x] ", "：", "。", "「", "\x0c", "\u2028", "\r", "\r\n",
    "\x1f", "\u3164", "\u200b", "\u202e", "\u0301", "\ud83d", "\0", "=", "+ ", "'", '"',
]  # fmt: skip
_WORDS = ["word", "Wort", "mot"]
_TEXT = st.lists(st.sampled_from([*_WORDS, *_WORDS, *_PIECES, *_PIECES])).map("".join)


def said(text: str) -> list[str]:
    """Give the words of ours in what the model wrote."""
    return re.findall("|".join(_WORDS), text)


def shown(html: str) -> list[str]:
    """Give the words of ours that can be read, or that the page says above code from its class."""
    root = parsed(html)
    languages = [code.get("class", "").removeprefix("language-") for code in root.iter("code")]
    return said(" ".join(["".join(root.itertext()), *filter(is_language, languages)]))


@untimed
@given(_TEXT)
@example("~~~~word")
@example("```py word\nmot\n```")
@example("- ~~~ Wort mot\n  word")
@example("|a|\n|-|\n|word|Wort|mot|\nword|Wort\n|word|")
@example("![word\nmot](https://a.example)")
@example("[![word](https://b.example)](https://a.example)")
@example("[word](b) ![mot](c.png)")
@example("<!-- word --> <b>mot</b>")
def test_no_word_is_ever_lost(text: str) -> None:
    assert sorted(shown(whole(text))) == sorted(said(text))


@untimed
@given(st.lists(st.tuples(st.sampled_from(_WORDS), st.sampled_from("\n \t\r\x0c\u2028\x1f\u3164")), max_size=9))
def test_no_two_words_run_together(pieces: list[tuple[str, str]]) -> None:
    text = "".join(word + separator for word, separator in pieces)
    assert text_of(whole(text)).split() == [word for word, _ in pieces]


@settings(untimed, max_examples=50)
@given(_TEXT, st.integers(1, 7))
def test_no_word_is_lost_in_pieces(text: str, size: int) -> None:
    page = stream(text[i : i + size] for i in range(0, len(text), size))
    assert sorted(shown(page.html)) == sorted(said(text))


@pytest.mark.parametrize(
    ("markdown", "words"),
    [
        (
            "[1]: https://a.example 'mot'\n[2]: <https://b.example>",
            ["[1]: https://a.example 'mot'", "[2]: https://b.example"],
        ),
        ("> - [word]:\n>   https://a.example\n", ["[word]:\nhttps://a.example"]),
        ("[a] and [b][c]\n\n[a]: https://a.example\n[c]: https://c.example\n", []),
    ],
)
def test_a_definition_that_no_link_uses_is_shown_at_the_end(markdown: str, words: list[str]) -> None:
    added = [block for block in parsed(whole(markdown)) if block.get("class") == "definition"]
    assert ["".join(block.itertext()) for block in added] == words
    assert stream(markdown).html == whole(markdown)
