"""What single pieces of Markdown become."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.markdown.clean import clean
from streaming.markdown.links import target
from streaming.markdown.sanitize import allowed, sanitize
from tests.streaming.markdown_page import faults, parsed, untimed, whole

# What `clean` treats, and what its treatment depends on: alone it would hardly ever come together.
_TREATED = [
    "a", "1", "#", "\n", "\t", "é", "中", "😀", "\u0301", "\u0591", "\u0301" * 7, "\u200c", "\u200d", "\ufe0e",
    "\ufe0f", "\U000e0101", "\ud83d", "\ude00", "\0", "\x85", "\u200b", "\u202e", "\u034f", "\ufffd", "\uffff",
    "\U000e0041", "\x0b", "\u2028", "\u3164", " ",
]  # fmt: skip
ANY_TEXT = st.lists(st.sampled_from(_TREATED) | st.characters(codec=None), max_size=30).map("".join)
MARKUP = st.lists(
    st.sampled_from(
        ["<", ">", "&", '"', "'", "/", "=", "script", "a ", "href=", "javascript:1", "https://a.example", "on", "<p",
         "</p>", "<svg>", "<!--", "-->", "<b>", "style", " ", "\n", "é", "`", "*", "[", "](", ")"]
    ),
    max_size=25,
).map("".join)  # fmt: skip


def link(markdown: str) -> tuple[str, str]:
    """Give the target and the whole text of the one link, or nothing."""
    found = parsed(whole(markdown)).find(".//a")
    return (found.attrib["href"], "".join(found.itertext())) if found is not None else ("", "")


def test_raw_html_is_text() -> None:
    assert whole("<b onclick=x>hi</b>") == '<p dir="auto">&lt;b onclick=x&gt;hi&lt;/b&gt;</p>\n'


def test_the_outermost_element_finds_its_own_direction_and_no_other() -> None:
    assert whole("> - a") == '<blockquote dir="auto">\n<ul>\n<li>a</li>\n</ul>\n</blockquote>\n'


def test_alignment_is_a_class() -> None:
    html = whole("|a|b|c|d|\n|:-|:-:|-:|-|\n|1|2|3|4|\n")
    assert [cell.get("class") for cell in parsed(html).iter("td")] == ["left", "center", "right", None]


@pytest.mark.parametrize("info", ['x" onclick="y', "x onclick=y", "a" * 33, "&quot;", "../x", "é"])
def test_a_strange_language_leaves_nothing_but_a_clean_class(info: str) -> None:
    assert faults(whole(f"```{info}\ncode\n```\n")) == []


def test_a_language_is_said_by_a_class() -> None:
    assert whole("```C++\nx\n```\n") == '<pre><code class="language-c++">x\n</code></pre>\n'


@pytest.mark.parametrize(
    "info", ["C++ numbered", "word", "é", 'js title="a.js"', "{.python}", "python:a/b.py", "language-"]
)
def test_an_info_string_that_is_no_language_stands_above_the_code(info: str) -> None:
    caption, code = parsed(whole(f"~~~{info}\nx\n~~~\n"))
    assert (caption.get("class"), caption.text, code.tag, "".join(code.itertext())) == ("code-info", info, "pre", "x\n")


@pytest.mark.parametrize(
    ("markdown", "numbers"),
    [
        ("1. a\n2. b\n3. c", [None, None, None]),
        ("3. a\n7. b\n8. c\n8. d\n2. e", [None, "7", None, "8", "2"]),
        ("1. a\n1. b\n1. c", [None, None, None]),
        ("> 2) a\n>    - b\n>      1. c\n>      5. d\n> 4) e", [None, None, None, "5", "4"]),
        ("1. a\n0000000009. b", [None]),
    ],
)
def test_items_keep_their_numbers(markdown: str, numbers: list[str | None]) -> None:
    assert [item.get("value") for item in parsed(whole(markdown)).iter("li")] == numbers


def test_a_row_with_too_many_cells_keeps_them_in_its_last() -> None:
    html = whole("|a|b|\n|-|-|\n|1|2|3|`4\\|`|\n|5|6|\n|7|\n8|9|10\n")
    cells = ["".join(cell.itertext()) for cell in parsed(html).iter("td")]
    assert cells == ["1", "2|3|4|", "5", "6", "7", "", "8", "9|10"]


def test_an_address_is_shown_as_it_was_said() -> None:
    assert link("<https://a.example/%E4%B8%AD>")[1] == "https://a.example/%E4%B8%AD"


@pytest.mark.parametrize(
    "href",
    [
        "javascript:alert(1)", "javascript:123", "JaVaScRiPt:1", "data:text/html,x", "vbscript:1", "tel:15551234567",
        "sms:1", "blob:https://a.example/1", "file:///etc/passwd", "ftp://a.example", "ws://a.example", "vscode:1",
        "localhost:8000", "/relative", "relative", "#fragment", "?query", "//a.example", "\\\\a.example", "",
        "https:a.example", "https:/a.example", "https:///a.example", "https://", "https:\\\\a.example", "http://a..b",
        "https://user@a.example", "https://user:secret@a.example", "https://bank.example@evil.example/",
        "https://bank.example%40evil.example", "https://%61.example", "https://a.example\\@evil.example",
        "http://[::1]/", "http://[::ffff:1.2.3.4]/", "http://2130706433/", "http://0x7f000001/", "http://127.1/",
        "http://0177.0.0.1/", "http://1.2.3.256/", "http://1.2.3.4.5/", "https://a.example:65536", "https://a.example:x",
        "https://a b.example", "https://.a.example", "https://-", "https://xn--a", "https://" + "a" * 2048,
        "mailto:", "mailto:a", "mailto:a@", "mailto:a@b.example,c@d.example", "mailto:%22a%22@b.example",
    ],
)  # fmt: skip
def test_a_link_that_browsers_may_read_in_two_ways_is_none(href: str) -> None:
    assert target(href) is None


@pytest.mark.parametrize(
    ("href", "shown"),
    [
        ("https://A.Example/b?c=d#e", "a.example"),
        ("HTTP://a.example:8080", "a.example"),
        ("https://a_b.example./", "a_b.example."),
        ("http://127.0.0.1:8000/", "127.0.0.1"),
        ("https://xn--mnchen-3ya.example/", "xn--mnchen-3ya.example"),
        ("mailto:Ann@a.example?subject=hi", "Ann@a.example"),
    ],
)
def test_an_allowed_link_has_a_host_or_an_address_to_show(href: str, shown: str) -> None:
    assert target(href) == shown


def test_a_link_shows_its_host() -> None:
    assert link("[docs](https://a.example/x)") == ("https://a.example/x", "docs (a.example)")


def test_a_link_that_names_another_host_shows_its_own() -> None:
    assert link("[https://bank.example](https://evil.example)")[1] == "https://bank.example (evil.example)"


def test_a_link_whose_text_only_begins_with_its_host_shows_it() -> None:
    assert link("[evil.example.bank.example](https://evil.example)")[1].endswith("(evil.example)")


@pytest.mark.parametrize("text", ["https://a.example/x", "a.example", "A.example/other", "<https://a.example/x>"])
def test_a_link_whose_text_is_its_address_says_it_once(text: str) -> None:
    markdown = text if text.startswith("<") else f"[{text}](https://a.example/x)"
    assert "(" not in link(markdown)[1]


def test_a_host_beyond_ascii_is_shown_as_punycode() -> None:
    assert link("<https://аpple.example>")[1].endswith("(xn--pple-43d.example)")


def test_an_empty_target_is_no_link() -> None:
    assert whole("[x]()") == '<p dir="auto">x</p>\n'


def test_an_image_is_a_link_to_it() -> None:
    assert link("![a *cat*](https://a.example/cat.png)") == ("https://a.example/cat.png", "a cat (a.example)")


def test_the_lines_of_an_image_do_not_run_together() -> None:
    assert link("![a\ncat](https://a.example/cat.png)")[1] == "a cat (a.example)"


def test_an_image_without_words_is_called_image() -> None:
    assert link("![](https://a.example/cat.png)")[1] == "image (a.example)"


def test_an_image_that_may_not_be_linked_is_its_words() -> None:
    assert link("![cat](data:image/png;base64,AA)") == ("", "")


@pytest.mark.parametrize("inner", ["![cat](https://b.example/c.png)", "<https://b.example/>"])
def test_a_link_holds_no_link(inner: str) -> None:
    assert whole(f"[{inner}](https://a.example)").count("<a ") == 1


def test_titles_are_dropped_because_they_can_lie() -> None:
    assert "bank" not in whole('[x](https://a.example "https://bank.example")')


@pytest.mark.parametrize("reference", ["&#x202e;", "&#8203;", "&#27;", "&#xE0041;", "&zwnj;x", "&#xd83d;", "&#0;"])
def test_character_references_bring_no_unseen_character_in(reference: str) -> None:
    assert faults(whole(f"a{reference}b `{reference}` [{reference}](https://a.example/{reference})")) == []


@untimed
@given(ANY_TEXT)
@example("\ud83d")
@example("\u200d\ufe0f")
def test_cleaned_text_is_valid_and_stays_as_it_is(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    once.encode()


@pytest.mark.parametrize("text", ["👩‍👩‍👧", "❤️‍🔥", "1️⃣", "می‌خواهم", "क्‍ष", "שָׁלוֹם", "Tiếng Việt", "葛󠄀"[:1], "a\tb"])
def test_what_scripts_and_emoji_need_stays(text: str) -> None:
    assert clean(text) == text


_SEPARATORS = "\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029\u3164\uffa0\ufffa"


@pytest.mark.parametrize("separator", _SEPARATORS, ids=ascii)
def test_what_separates_words_becomes_a_space(separator: str) -> None:
    assert whole(f"one{separator}two") == '<p dir="auto">one two</p>\n'
    assert whole(f"`one{separator}{separator}two`") == '<p dir="auto"><code>one two</code></p>\n'


@pytest.mark.parametrize("reference", ["&#12;", "&#13;", "&#x2028;", "&#8233;", "&#x3164;"])
def test_character_references_let_no_words_run_together(reference: str) -> None:
    assert whole(f"one{reference}two") == '<p dir="auto">one two</p>\n'


@pytest.mark.parametrize("line_end", ["\r", "\r\n", "\n"])
def test_every_line_end_keeps_words_apart(line_end: str) -> None:
    assert whole(f"one{line_end}two") == '<p dir="auto">one\ntwo</p>\n'


@pytest.mark.parametrize("separator", [*_SEPARATORS, "\u200b\x0c", "\x0c\u200d"], ids=ascii)
def test_a_separator_at_the_end_of_a_line_steers_no_parser(separator: str) -> None:
    assert whole(f"{separator * 4}one{separator * 2}\ntwo") == '<p dir="auto">one\ntwo</p>\n'


def test_what_separates_no_words_leaves_no_space() -> None:
    assert clean("o\xadn\u200be\u2060 t\u180ew\0o") == "one two"


def test_data_in_variation_selectors_goes() -> None:
    assert clean("a\ufe00b😀\ufe0f\ufe01\ufe02\U000e0101") == "ab😀\ufe0f"


def test_a_selector_behind_a_joiner_goes() -> None:
    assert clean("é\u200d\ufe0fé") == "é\u200dé"


def test_joiners_beside_ascii_or_in_rows_go() -> None:
    assert clean("us\u200der é\u200d\u200dé") == "user éé"


def test_marks_do_not_pile_up() -> None:
    assert len(clean("a" + "\u0301" * 500)) == 9


@untimed
@given(MARKUP)
def test_the_sanitisers_let_nothing_unlisted_through(html: str) -> None:
    # Only what the writer writes has a host to show and its rel.
    assert [fault for fault in faults(sanitize(html, twice=True)) if not fault.startswith("a link")] == []


@untimed
@given(MARKUP)
def test_bleach_changes_no_meaning_of_what_nh3_gave(markdown: str) -> None:
    once = sanitize(whole(markdown), twice=False)
    assert sanitize(once, twice=True) == once


@pytest.mark.parametrize(
    ("tag", "name", "value"),
    [("a", "href", "javascript:1"), ("a", "title", "x"), ("p", "lang", "en"), ("span", "class", "pane"),
     ("code", "class", "language-x y"), ("ol", "start", "-1"), ("p", "dir", "rtl"), ("td", "style", "x")],
)  # fmt: skip
def test_the_allow_list_judges_values_too(tag: str, name: str, value: str) -> None:
    assert not allowed(tag, name, value)
