"""Bare addresses are links, under the rules of all others, and nothing but the address is in them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.streaming.markdown_page import faults, parsed, text_of, untimed, whole


def links(markdown: str) -> list[tuple[str, str]]:
    """Give the target and the text of each link."""
    return [(link.attrib["href"], "".join(link.itertext())) for link in parsed(whole(markdown)).iter("a")]


@pytest.mark.parametrize(
    ("markdown", "address"),
    [
        ("More at https://example.com/guide, or here", "https://example.com/guide"),
        ("详见 https://example.com/a。谢谢", "https://example.com/a"),
        *((f"见https://a.example/b{mark}谢", "https://a.example/b") for mark in "。，、；：！？）」』】》〉”’…　～＂"),
        ("来源:https://a.example", "https://a.example"),
        ("请访问https://example.com/docs了解更多", "https://example.com/docs"),
        ("https://example.com谢谢", "https://example.com"),
        ("https://example.com/docs를 참고", "https://example.com/docs"),
        ("ดูhttps://example.com/docsได้", "https://example.com/docs"),
        ("(https://a.example/Foo_(bar))", "https://a.example/Foo_(bar)"),
        ("(see https://a.example/x)and", "https://a.example/x"),
        ("[https://a.example/x] {https://b.example}", "https://a.example/x"),
        ("**https://a.example/x**: y", "https://a.example/x"),
        ("_https://a.example_", "https://a.example"),
        ("https://a.example/**b**", "https://a.example/"),
        ("~~https://a.example/~~", "https://a.example/"),
        ('"https://a.example/x", he said', "https://a.example/x"),
        ("'https://a.example/x'", "https://a.example/x"),
        ("“https://a.example/x”", "https://a.example/x"),
        ("https://a.example/x?! Yes", "https://a.example/x"),
        ("https://a.example/a,b;c=d*e*", "https://a.example/a,b;c=d*e"),
        ("https://a.example, https://a.example", "https://a.example"),
        ("https://a.example(see below)", "https://a.example"),
        (r"https://a.example/x\_y_z", "https://a.example/x_y_z"),
        ("https://a.example/?a=1&amp;b=2", "https://a.example/?a=1&b=2"),
        ("https://a.example/?a=1&b=2", "https://a.example/?a=1&b=2"),
        ("&lt;https://a.example/x&gt;", "https://a.example/x"),
        ("HTTP://a.example/B", "HTTP://a.example/B"),
        ("http://localhost:8000.", "http://localhost:8000"),
        ("http://db:5432/x", "http://db:5432/x"),
        ("http://1.2.3.4/", "http://1.2.3.4/"),
        ("url=https://a.example;", "https://a.example"),
        ("https://a.example/web/https://b.example/", "https://a.example/web/https://b.example/"),
        ("https://a.example/one\\", "https://a.example/one"),
        ("https://a.example/one\u2028two", "https://a.example/one"),
        ("# https://a.example #", "https://a.example"),
        ("|a|\n|-|\n|https://a.example|", "https://a.example"),
    ],
)  # fmt: skip
def test_a_bare_address_is_a_link_without_what_surrounds_it(markdown: str, address: str) -> None:
    assert links(markdown)[0] == (address, address)


@pytest.mark.parametrize(
    ("markdown", "href", "text"),
    [
        ("https://a.example/w/中。", "https://a.example/w/%E4%B8%AD", "https://a.example/w/中 (a.example)"),
        ("https://bücher.example", "https://xn--bcher-kva.example", "https://bücher.example (xn--bcher-kva.example)"),
        ("https://аpple.example", "https://xn--pple-43d.example", "https://аpple.example (xn--pple-43d.example)"),
        ("https://a.example/{id}", "https://a.example/%7Bid%7D", "https://a.example/{id} (a.example)"),
    ],
)  # fmt: skip
def test_an_address_beyond_plain_ascii_shows_its_host(markdown: str, href: str, text: str) -> None:
    assert links(markdown) == [(href, text)]


@pytest.mark.parametrize(
    "markdown",
    [
        "www.a.example", "a.example", "ftp://a.example", "mailto:a@b.example", "a@b.example", "xhttps://a.example", "https://",
        "http://x", "https:///a.example", "https:/a.example", "https:a.example", "https://.a.example", "javascript://a.example",
        "https://bank.example@evil.example/", "https://bank.example:80@evil.example/", "https://bank.example!x@evil.example",
        r"https://bank.example\@evil.example", "http://2130706433/", "http://127.1/", "https://a.example:65536", "http://a..b",
        "https://xn--a.example", "`https://a.example`", "```\nhttps://a.example\n```", "    https://a.example",
        r"\(https://a.example\)", "$x https://a.example$", "https\\://a.example", "https://a.example/" + "x" * 2048,
    ],
)  # fmt: skip
def test_what_is_no_link(markdown: str) -> None:
    assert "<a " not in whole(markdown)


@pytest.mark.parametrize(
    "markdown",
    [
        "[https://b.example](https://a.example)", "[see https://b.example now](https://a.example)", "<https://a.example>",
        "![https://b.example](https://a.example)", "[b]\n\n[b]: https://a.example",
    ],
)  # fmt: skip
def test_in_other_links_nothing_is_one(markdown: str) -> None:
    assert [href for href, _ in links(markdown)] == ["https://a.example"]


_PIECES = st.lists(
    st.sampled_from(
        ["https://a.example", "http://", "https://", "/", "b", "(", ")", "[", "]", "*", "**", "_", "~~", "`", "\\",
         "&amp;", "&lt;", "&", ".", ",", ":", "@", "?", "#", "=", " ", "\n", "中", "。", "é", "“", "<",
         ">", "|", "$", "!", "\u202e", "8"]),
    max_size=14,
).map("".join)  # fmt: skip


@untimed
@given(text=_PIECES)
def test_addresses_of_any_kind_stay_within_the_allow_list(text: str) -> None:
    assert faults(whole(text)) == []


@untimed
@given(
    before=st.sampled_from(["", "(", "“", "中", "**"]),
    path=st.text("ab/._-?=&%中é", max_size=8),
    after=st.text("。，)!”", max_size=3),
)
def test_no_character_around_an_address_is_lost(before: str, path: str, after: str) -> None:
    text = f"{before}https://a.example/{path}{after} end"
    assert text_of(whole(text)).replace(" (a.example)", "") == text + "\n"


@pytest.mark.parametrize(
    "text",
    ["http://" * 9000, "https://a" + "(" * 60_000, "https://a.b/" + "(" * 60_000, "https://a.b/" + ")" * 60_000,
     "https://a.b/" * 5000, "https://a.b/é" * 5000, "https://u@a.b/" * 4500, "https://a." * 6000,
     "https://" + "." * 60_000, "[http://a.b/" * 5000, "https://a.b " * 5000, "https://a.b/" + "\\_" * 30_000,
     "https://a.b/" + "中" * 60_000, "https://a.b/" + "&amp;" * 12_000, ":" * 60_000],
    ids=range(15),
)  # fmt: skip
def test_64_kb_of_half_addresses_take_linear_time(text: str) -> None:
    began = time.process_time()
    whole(text)
    # The dearest of them takes 0.5 s.
    assert time.process_time() - began < 3
