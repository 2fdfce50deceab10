"""Emphasis in scripts that put no spaces between words, and everywhere else as CommonMark has it."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it.parser_inline import ParserInline

from streaming.markdown import parse
from streaming.markdown.spaceless import is_spaceless
from tests.streaming.markdown_page import untimed, whole


def inside(markdown: str) -> str:
    """Give what stands in the one paragraph."""
    return whole(markdown).removeprefix('<p dir="auto">').removesuffix("</p>\n")


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("**注意：**请先备份。", "<strong>注意：</strong>请先备份。"),
        (
            "**注意：**请先备份，再执行**“灰度”**发布。",
            "<strong>注意：</strong>请先备份，再执行<strong>“灰度”</strong>发布。",
        ),
        ("这叫**「重点」**内容", "这叫<strong>「重点」</strong>内容"),
        ('这叫**"重点"**内容', '这叫<strong>"重点"</strong>内容'),
        ("这叫**(重点)**内容", "这叫<strong>(重点)</strong>内容"),
        ("*（例）*です", "<em>（例）</em>です"),
        ("~~旧：~~新", "<s>旧：</s>新"),
        ("***重要：***请", "<em><strong>重要：</strong></em>请"),
        ("**外*「内」*外。**后", "<strong>外<em>「内」</em>外。</strong>后"),
        ("**テスト。**テスト", "<strong>テスト。</strong>テスト"),
        ("**ｱｲｳ｡**ｴｵ", "<strong>ｱｲｳ｡</strong>ｴｵ"),
        ("**한국어(괄호)**를", "<strong>한국어(괄호)</strong>를"),
        ("**`npm i`**를", "<strong><code>npm i</code></strong>를"),
        ("ᄏ**(k)**ᄏ", "ᄏ<strong>(k)</strong>ᄏ"),
        ("Go**「初心者」**を", "Go<strong>「初心者」</strong>を"),
        ("**𠮷。**𠮷", "<strong>𠮷。</strong>𠮷"),
        ("𰻞**(ビャン)**麺", "𰻞<strong>(ビャン)</strong>麺"),
        ("**价格：￥**九", "<strong>价格：￥</strong>九"),
        ("大塚\ufe00**(注)**大", "大塚\ufe00<strong>(注)</strong>大"),
        ("**“\ufe01Git”\ufe01**Hub", "<strong>“\ufe01Git”\ufe01</strong>Hub"),
        ("**注意：**\u200b请", "<strong>注意：</strong>请"),
        ("**หมายเหตุ:**กรุณา", "<strong>หมายเหตุ:</strong>กรุณา"),
        ("**សម្គាល់៖**សូម", "<strong>សម្គាល់៖</strong>សូម"),
        ("**(注)** 后", "<strong>(注)</strong> 后"),
    ],
)
def test_emphasis_beside_the_punctuation_of_scripts_without_spaces(markdown: str, html: str) -> None:
    assert inside(markdown) == html


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("`**注意：**请先`", "<code>**注意：**请先</code>"),
        (r"\*\*注意：\*\*请先", "**注意：**请先"),
        ("** 注意：**请", "** 注意：**请"),
        ("_注意：_请", "_注意：_请"),
        ("__注意：__请", "__注意：__请"),
        ("**Note:**see", "**Note:**see"),
        ("a**🎉**b", "a**🎉**b"),
        ("価格~5と~6", "価格~5と~6"),
    ],
)
def test_what_is_no_emphasis_stays_as_it_came(markdown: str, html: str) -> None:
    assert inside(markdown) == html


def test_emphasis_in_a_list_and_a_table() -> None:
    assert "<li><strong>概念：</strong>说明文字</li>" in whole("- **概念：**说明文字")
    assert "<td><strong>概念：</strong>说</td>" in whole("|a|\n|-|\n|**概念：**说|")


# One of each kind, and one that only the astral planes hold.
_SPACELESS = st.sampled_from("請语かカｱ한ㄱ𠮷，。：；！？「」『』【】（）〈〉《》～、｡｢･\u0e01ក")
_PUNCTUATION = st.sampled_from("。，：；！？」』】）》、\"')]:.!?…”’")
_MARKS = st.sampled_from(["*", "**", "***", "~~"])


@untimed
@given(before=_SPACELESS, first=_SPACELESS, last=_PUNCTUATION, after=_SPACELESS, mark=_MARKS)
def test_marks_between_characters_without_spaces_always_pair(
    before: str, first: str, last: str, after: str, mark: str
) -> None:
    assert mark[0] not in inside(f"{before}{mark}{first}{last}{mark}{after}")


@pytest.fixture(scope="module")
def as_commonmark() -> Any:
    """The same parser but for its emphasis."""
    plain = parse._build_parser()
    ours, plain.inline = plain.inline, ParserInline()
    plain.inline.ruler = ours.ruler
    plain.inline.ruler2 = ours.ruler2
    return plain


_TEXT = st.lists(
    st.sampled_from(["*", "**", "_", "__", "~~", " ", "a", "é", "ж", ".", "(", ")", "“", "”", "—", "`", "[", "\n"])
    | st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]).filter(lambda char: not is_spaceless(char)),
    max_size=14,
).map("".join)  # fmt: skip


@untimed
@given(text=_TEXT)
def test_text_without_such_characters_is_as_commonmark_has_it(as_commonmark: Any, text: str) -> None:
    ours, theirs = (parser.parseInline(text)[0].as_dict() for parser in (parse._PARSER, as_commonmark))
    assert ours == theirs


def test_all_that_unicode_calls_wide_is_spaceless_or_an_emoji() -> None:
    wide = [char for char in map(chr, range(0x110000)) if unicodedata.east_asian_width(char) in ("W", "F", "H")]
    missing = [char for char in wide if not is_spaceless(char) and unicodedata.category(char) not in ("Cn", "Zs")]
    assert {unicodedata.category(char) for char in missing} <= {"So", "Sk", "Sm"}
    assert [char for char in missing if ord(char) < 0x231A or 0x2E80 <= ord(char) < 0x1F000] == []
