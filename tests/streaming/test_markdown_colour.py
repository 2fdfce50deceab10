"""Colours of code: no text is lost, no lexer hangs, and every colour can be read."""

from __future__ import annotations

import math
import re
import time
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.markdown.colour import LANGUAGES, MAX_COLOURED, PREFIX, TOKEN_CLASSES, coloured

_CSS = Path(__file__).resolve().parents[2] / "static" / "css"
_CODE = st.lists(
    st.sampled_from(
        ["def ", "class ", "x", "1", '"', "'", "\\", "/*", "*/", "//", "#", "\n", " ", "\t", "(", ")", "{", "}", "<",
         ">", "&", "=", "$", "@", "`", "<?php", "--", "é", ";", ":", "- ", "<!--"]
    ),
    max_size=40,
).map("".join)  # fmt: skip
# Found by timing every lexer on thousands of repeated pieces: each took seconds somewhere, unbounded.
_HOSTILE = ["\n", "a\n", "@a\n", "$\n", "a.\n", '\\"\n', "a ", "/", "m{\n", "<<A\n", "=begin\n", "a<b>\n", "( ", "_"]


@pytest.mark.parametrize("language", sorted(set(LANGUAGES.values()) & set(LANGUAGES)))
@settings(max_examples=20, deadline=None)
@given(code=_CODE)
def test_colours_add_spans_and_change_no_text(language: str, code: str) -> None:
    html = coloured(code, language)
    assert not html or unescape(re.sub(r"</?span[^>]*>", "", html)) == code


@pytest.mark.parametrize("language", sorted(set(LANGUAGES.values()) & set(LANGUAGES)))
def test_no_lexer_takes_long(language: str) -> None:
    for piece in _HOSTILE:
        code = (piece * MAX_COLOURED)[:MAX_COLOURED]
        began = time.process_time()
        coloured(code, language)
        assert time.process_time() - began < 1.0, piece


@pytest.mark.parametrize("language", sorted(set(LANGUAGES)))
def test_every_name_finds_a_lexer(language: str) -> None:
    assert coloured("x\n", language)


def test_an_unknown_language_has_no_colours() -> None:
    assert coloured("x = 1", "made-up") == ""


def test_python_has_its_kinds() -> None:
    html = coloured('@d\ndef f(x):\n    return "s" + len(x) * 1  # c\n', "python")
    assert set(re.findall(rf'"{PREFIX}(\w)"', html)) == {"a", "k", "f", "s", "b", "n", "c"}


def test_a_diff_has_its_kinds() -> None:
    html = coloured("@@ -1 +1 @@\n-old\n+new\n", "diff")
    assert set(re.findall(rf'"{PREFIX}(\w)"', html)) == {"h", "d", "i"}


def test_the_style_sheet_knows_every_class_and_no_other() -> None:
    found = set(re.findall(rf"\.{PREFIX}(\w)\b", (_CSS / "code.css").read_text()))
    assert found == set(TOKEN_CLASSES)


def test_every_colour_can_be_read_on_every_ground_in_light_and_dark() -> None:
    grounds = _light_and_dark((_CSS / "tokens.css").read_text(), r"--color-(?:canvas|surface|sunken)")
    words = _light_and_dark((_CSS / "code.css").read_text(), r"\.tok-\w \{ color")
    assert len(grounds) == 3
    assert len(words) == len(TOKEN_CLASSES) - 1
    weak = [
        (name, ground, mode)
        for name, word in words.items()
        for ground, under in grounds.items()
        for mode in (0, 1)
        if _contrast(word[mode], under[mode]) < 4.5
    ]
    assert weak == []


def _light_and_dark(css: str, name: str) -> dict[str, tuple[float, float]]:
    """Find luminances of `name: light-dark(oklch(…), oklch(…))`."""
    number = r"([\d.]+)"
    colour = rf"oklch\({number} {number} {number}\)"
    found = re.finditer(rf"(?P<name>{name}): light-dark\({colour}, {colour}\)", css)
    return {
        match["name"]: (_luminance(*map(float, match.groups()[1:4])), _luminance(*map(float, match.groups()[4:7])))
        for match in found
    }


def _luminance(lightness: float, chroma: float, hue: float) -> float:
    """Give the relative luminance of an OKLCH colour (Ottosson's matrices; gamut mapping left out)."""
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    red = 4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short
    green = -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short
    blue = -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short
    clipped = [min(1.0, max(0.0, channel)) for channel in (red, green, blue)]
    return 0.2126 * clipped[0] + 0.7152 * clipped[1] + 0.0722 * clipped[2]


def _contrast(one: float, other: float) -> float:
    light, dark = max(one, other), min(one, other)
    return (light + 0.05) / (dark + 0.05)
