"""Hostile sizes: every text is rendered in bounded time and space, and past a cap it is plain."""

from __future__ import annotations

import random
import time

import pytest

from streaming.markdown.colour import MAX_COLOURED, coloured
from streaming.markdown.definitions import References
from streaming.markdown.parse import parse_blocks
from streaming.markdown.seal import GROWTH_ALLOWANCE, MAX_BLOCK, MAX_GROWTH, Allowance, render, seal
from tests.streaming.corpora import Generator, generators
from tests.streaming.markdown_page import stream, text_of, whole

# Processor time for 64 KB. Alone on a machine it stays under one second; beside others that use the same
# cores processor time grows too, and what this looks for, growth with the square, takes far longer still.
_SECONDS = 3.0
# The smallest markup of a block may be longer than eight times its source.
_SMALLEST_BLOCK = 32
_OWN = [
    Generator("tables in a quote", "'> ' + ('|a'*11+'|\\n> '+'|-'*11+'|\\n> '+'|\\n> '*12+'\\n> ')*n", 800),
    Generator("fences in a list", "'- ' + '```\\n  ```\\n  '*n", 5000),
    Generator("a fence of angle brackets", "'```\\n' + '<'*n + '\\n```\\n'", 65_000),
    Generator("a fence of ampersands", "'```\\n' + '&'*n + '\\n```\\n'", 65_000),
    Generator("many links", "'[a](http://b.c) '*n", 4000),
    Generator("many images", "'![a](http://b.c/) '*n", 3600),
    Generator("nested images", "'!['*n + '](http://a.b)'*n", 5000),
    Generator("a long address used often", "'[a]: http://b.c/' + 'x'*1500 + '\\n\\n' + '[a][a] '*n", 9000),
    Generator("emphasis on everything", "'*a* '*n", 16_000),
    Generator("brackets on lines", "'[a\\n'*n", 20_000),
    Generator("half definitions", "'[a]: \\n'*n", 10_000),
    Generator("quotes in quotes", "('> '*30 + 'a\\n')*n", 1000),
    Generator("lists in lists", "''.join('  '*(i%40) + '- a\\n' for i in range(n))", 1400),
    Generator("lists of blank lines", "'- a\\n\\n'*n", 12_000),
    Generator("piled marks", "'a' + '\\u0301'*n", 60_000),
    Generator("joiners", "'é\\u200d'*n", 30_000),
    Generator("carriage returns", "'\\r'*n", 65_000),
]
_TINY_BLOCKS = [
    Generator("empty headings", "'#\\n'*n", 32_000),
    Generator("underlined headings", "'a\\n-\\n'*n", 16_000),
    Generator("lists and rules", "'- a\\n***\\n'*n", 8000),
    Generator("small tables", "('|a'*11+'|\\n'+'|-'*11+'|\\n'+'|\\n'*11+'\\n')*n", 800),
]
_ALL = [*generators(), *_OWN]


def _id(generator: Generator) -> str:
    return generator.id


@pytest.mark.parametrize("generator", _ALL, ids=_id)
def test_64_kb_are_rendered_within_a_second(generator: Generator) -> None:
    text = generator.text(MAX_BLOCK)
    began = time.process_time()
    render(text)
    assert time.process_time() - began < _SECONDS


@pytest.mark.parametrize("generator", [*_ALL, *_TINY_BLOCKS], ids=_id)
def test_html_is_at_most_eight_times_the_text(generator: Generator) -> None:
    text = generator.text(MAX_BLOCK // 4)
    blocks = render(text)
    size = sum(len(block.html) for block in blocks)
    assert size <= MAX_GROWTH * len(text) + GROWTH_ALLOWANCE + _SMALLEST_BLOCK * len(blocks)


@pytest.mark.parametrize("generator", [*_ALL, *_TINY_BLOCKS], ids=_id)
def test_hostile_text_in_pieces_ends_as_the_whole_does(generator: Generator) -> None:
    text = generator.text(MAX_BLOCK // 8)
    page = stream((text[i : i + 97] for i in range(0, len(text), 97)), step_ms=50)
    assert page.html == whole(text)


@pytest.mark.parametrize(
    "text",
    [
        "> " * 40 + "deep",
        "*a **a " * 40 + "b" + " a** a*" * 40,
        "- x\n" * 9000,
        "[a](https://a.example) " * 3000,
        "word " * 20_000,
        "|" + "a|" * 60 + "\n|" + "-|" * 60 + "\n" + ("|" + "b|" * 60 + "\n") * 100,
        "[" * 5000,
    ],
    ids=["deep quotes", "deep emphasis", "many items", "many links", "long", "many cells", "many brackets"],
)
def test_past_a_cap_the_text_is_plain(text: str) -> None:
    assert whole(text) == f'<pre class="plain">{text.rstrip(chr(10))}</pre>\n'.replace("> ", "&gt; ")


def test_a_wide_table_is_a_paragraph() -> None:
    assert whole("|a" * 70 + "|\n" + "|-" * 70 + "|\n").startswith("<p")


def test_a_table_that_lacks_most_of_its_cells_ends() -> None:
    html = whole("|a" * 16 + "|\n" + "|-" * 16 + "|\n" + "|x|\n" * 40)
    assert html.count("<td") <= 16 * 10
    assert text_of(html).count("x") == 40


def test_a_text_of_tiny_blocks_soon_gets_no_more_markup() -> None:
    blocks = render("# a\n" * 2000)
    assert [block.html for block in blocks[:2]] == ['<h1 dir="auto">a</h1>\n'] * 2
    assert blocks[-1].html == '<pre class="plain"># a</pre>\n'


def test_what_is_too_long_for_colours_has_none() -> None:
    code = "x = 1\n" * (MAX_COLOURED // 6 + 1)
    assert coloured(code, "python") == ""
    assert whole(f"```python\n{code}```\n").startswith('<pre><code class="language-python">x = 1')


def test_an_allowance_is_the_same_for_the_same_blocks_before() -> None:
    texts = ["|a|b|\n|-|-|\n|1|2|\n\n", "#\n", "word\n\n"] * 50
    random.Random(4).shuffle(texts)
    lines = "".join(texts).splitlines(keepends=True)
    references = References()
    first, second = (
        [seal(block, lines, references, allowance) for block in parse_blocks(lines, references)]
        for allowance in (Allowance(), Allowance())
    )
    assert first == second
