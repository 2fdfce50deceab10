"""What bleach is not asked about is what it would give back as it is."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streaming.markdown.sanitize import bleached
from streaming.markdown.unchanged import is_unchanged_by_bleach
from tests.streaming.markdown_page import untimed

_PLAIN = [
    "a", "=", '"', "'", " ", "\n", "\t", "`", ";", "é", "\xa0", "\u0301", "\u2028", "\ufffd", "\U00010000",
    "\U0001fffe", "&amp;", "&lt;", "&gt;", "&nbsp;", "&amp;amp;", "amp;", "lt;", "#x41;",
]  # fmt: skip
_HOSTILE = [
    "&", "<", ">", "\r", "\f", "\v", "\0", "\x1b", "\x7f", "\x85", "\ufdd0", "\uffff", "&quot;", "&#65;", "&#0;",
    "&copy", "&copy;", "&lt", "&LT;", "&xyzzy;", "</p>", "<p>", "</li>", "<li>", "<b>", "</em>", "<em>", "<code>",
    "<pre>", "<hr>", "<td>", "<!--", "-->", "<script>", "<svg>", ' dir="auto"', ' start="1"', ' onclick="a"',
    "<a href='https://a.example'>",
]  # fmt: skip


def _several(pieces: st.SearchStrategy[str], most: int = 3) -> st.SearchStrategy[str]:
    return st.lists(pieces, max_size=most).map("".join)


def _in(tags: list[str], inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Put something in an element: `tags` are the insides of start tags."""
    return st.tuples(st.sampled_from(tags), inside).map(lambda both: f"<{both[0]}>{both[1]}</{both[0].split()[0]}>")


def _ended(block: str) -> str:
    return block + "\n"


def _directed(*tags: str) -> list[str]:
    return [*tags, *(f'{tag} dir="auto"' for tag in tags)]


_TEXT = _several(st.sampled_from(_PLAIN))
_WORDS = _TEXT | st.just("<br>") | _in(["code", 'span class="math"', 'span class="math math-display"'], _TEXT)
_INLINE = _several(_WORDS | _in(["em", "s", "strong"], _several(_WORDS)))
_PARAGRAPH = _in(_directed("p"), _INLINE).map(_ended)
_COLOURED = _in([f'span class="tok-{kind}"' for kind in "kscnfbatidh"], _TEXT)
_CODE = _in(["code", 'code class="language-c++"', 'code class="language-a#.b"'], _several(_TEXT | _COLOURED))
_CAPTION = st.just("") | _in(['p class="code-info"'], _TEXT).map(_ended)
_CODE_BLOCK = st.tuples(_CAPTION, _in(["pre"], _CODE).map(_ended)).map("".join)


def _list(depth: int) -> st.SearchStrategy[str]:
    inside = _PARAGRAPH | _CODE_BLOCK | _list(depth - 1) if depth > 1 else _PARAGRAPH | _CODE_BLOCK
    item = _in(["li", 'li value="12"'], st.tuples(_INLINE, _several(inside, 2)).map("".join)).map(_ended)
    return _in(_directed("ul", "ol", 'ol start="7"'), _several(item).map("\n".__add__)).map(_ended)


_QUOTE = _in(_directed("blockquote"), _several(_PARAGRAPH).map("\n".__add__)).map(_ended)
_HEADING = _in(_directed(*(f"h{level}" for level in range(1, 7))), _INLINE).map(_ended)
PLAIN_BLOCKS = _PARAGRAPH | _HEADING | _CODE_BLOCK | _list(3) | _QUOTE | st.just("<hr>\n")


_SPOILT_TEXT = st.tuples(_TEXT, st.sampled_from(_HOSTILE) | st.characters(codec="utf-8"), _TEXT).map("".join)
_SPOILT_BLOCKS = st.tuples(
    st.sampled_from(["<p>{}</p>\n", "<p><em>{}</em></p>\n", "<pre><code>{}</code></pre>\n", "<pre>{}</pre>\n"]),
    _SPOILT_TEXT,
).map(lambda both: both[0].format(both[1]))


@st.composite
def _cut_blocks(draw: st.DrawFn) -> str:
    """Give a plain block of which a part is missing, or stands there twice."""
    html = draw(PLAIN_BLOCKS)
    start, end = sorted((draw(st.integers(0, len(html))), draw(st.integers(0, len(html)))))
    return html[:start] + html[start:end] * draw(st.sampled_from([0, 2])) + html[end:]


@settings(untimed, max_examples=500)
@given(_SPOILT_BLOCKS)
@example("<pre>\n</pre>\n")
def test_bleach_gives_back_what_is_called_unchanged_whatever_the_text(html: str) -> None:
    assert not is_unchanged_by_bleach(html) or bleached(html) == html


@settings(untimed, max_examples=300)
@given(PLAIN_BLOCKS | _cut_blocks())
@example("<p><code></code>=&amp;lt;</p>\n")
def test_bleach_gives_back_what_is_called_unchanged_whatever_the_elements(html: str) -> None:
    assert not is_unchanged_by_bleach(html) or bleached(html) == html


@untimed
@given(PLAIN_BLOCKS)
@example("<ul>\n<li>a<ul>\n<li>b<ul>\n<li>c</li>\n</ul>\n</li>\n</ul>\n</li>\n</ul>\n")
def test_bleach_need_not_be_asked_about_plain_blocks(html: str) -> None:
    assert is_unchanged_by_bleach(html)


@pytest.mark.parametrize(
    "html",
    [
        "", "a", "<p>a", "<p>a</p>", "<p>a</p>\n<p>b</p>\n", "<P>a</P>\n", "<p >a</p>\n", "<h1>a</h2>\n",
        "<ul>\n</ol>\n", "<p>a & b</p>\n", "<p>&copy;</p>\n", "<p>&lt</p>\n", "<p>&#65;</p>\n", "<p>></p>\n",
        "<p>\r</p>\n", "<p>\f</p>\n", "<p>\0</p>\n", "<p>\ud83d</p>\n", "<p>\uffff</p>\n", "<p><p></p></p>\n",
        "<p><b>a</b></p>\n", "<div>a</div>\n", "<p><em><em>a</em></em></p>\n", "<pre>a</pre>\n",
        '<p dir="rtl">a</p>\n', '<p dir="auto" dir="auto">a</p>\n', '<p id="a">a</p>\n', '<ul start="1">\n</ul>\n',
        '<ol start="-1">\n</ol>\n', '<p><span class="pane">a</span></p>\n',
        '<p><span class="math"><em>a</em></span></p>\n', '<p><span class="math" class="math">a</span></p>\n',
        '<pre><code class="language-a b"></code></pre>\n',
        '<pre><code><span class="tok-z">a</span></code></pre>\n',
        '<p><a href="https://a.example" rel="noopener noreferrer nofollow" target="_blank">a</a></p>\n',
        "<table>\n<thead>\n<tr>\n<th>a</th>\n</tr>\n</thead>\n</table>\n", "<script>a</script>\n",
        "<!-- a -->\n",
    ],
)  # fmt: skip
def test_bleach_is_asked_about_all_else(html: str) -> None:
    assert not is_unchanged_by_bleach(html)


@pytest.mark.parametrize(
    "html",
    [
        "<p>" + "a<em>" * 40_000, "<p>" + "<em>a</em>" * 20_000 + "<b>", "<p>" + "&lt;" * 50_000 + "&",
        "<p>" + "a" * 200_000 + "<b>", "<p>" + "<" * 200_000, "<ul>\n" + "<li>a<ul>\n" * 20_000,
        "<ul>\n" + "<li>a<ol>\n<li>b</li>\n</ol>\n</li>\n" * 6000 + "</ol>\n",
        "<ul>\n" + "<li>" + "<p>a</p>\n" * 20_000 + "<b>",
        "<pre><code>" + '<span class="tok-k">a</span>' * 7000 + "<b>",
    ],
    ids=range(9),
)  # fmt: skip
def test_200_kb_that_nearly_are_plain_are_told_at_once(html: str) -> None:
    began = time.process_time()
    assert not is_unchanged_by_bleach(html)
    # It takes about 3 ms; growth with the square would take minutes.
    assert time.process_time() - began < 1
