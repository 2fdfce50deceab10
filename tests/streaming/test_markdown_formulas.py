"""Formulas are shown as they came: no character of one is taken for Markdown, and no money for a formula."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.markdown import BlockRenderer
from tests.streaming.markdown_page import parsed, stream, text_of, untimed, whole


def formulas(markdown: str) -> list[str]:
    found = parsed(whole(markdown)).iter("span")
    return ["".join(span.itertext()) for span in found if "math" in span.get("class", "").split()]


@pytest.mark.parametrize(
    ("markdown", "formula"),
    [
        (r"Solve \(x^2 - 5x + 6 = 0\).", r"\(x^2 - 5x + 6 = 0\)"),
        (r"so \(a_1*b_2*c_3\) is", r"\(a_1*b_2*c_3\)"),
        (r"$\{x \mid x > 0\}$", r"$\{x \mid x > 0\}$"),
        (r"$\{2\}$, then", r"$\{2\}$"),
        ("公式$x_1$的", "$x_1$"),
        ("the $n$th and the $k$-means", "$n$"),
        (r"$a\$b$", r"$a\$b$"),
        (r"$$\int_0^1 x\,dx$$", r"$$\int_0^1 x\,dx$$"),
        (r"$$\text{if $x$}$$", r"$$\text{if $x$}$$"),
        (r"\[ a[0] \\[2pt] b \]", r"\[ a[0] \\[2pt] b \]"),
        (r"\( a \\) b \)", r"\( a \\) b \)"),
        (r"\(x<y&z\)", r"\(x<y&z\)"),
        (r"\(&lt;\) and \(https://a.example\)", r"\(&lt;\)"),
        (r"\([a](https://a.example)\)", r"\([a](https://a.example)\)"),
        (r"\(`a`\)", r"\(`a`\)"),
        (r"\(<https://a.example>\)", r"\(<https://a.example>\)"),
        (r"**\(a*b*c\)**", r"\(a*b*c\)"),
        (r"# \(\_\)", r"\(\_\)"),
        (r"[\(a]_b\)](https://a.example)", r"\(a]_b\)"),
        (r"\begin{a}\begin{a}1 \\ 2\end{a}\end{a}", r"\begin{a}\begin{a}1 \\ 2\end{a}\end{a}"),
        (r"\begin{b*}\begin{c}\{\}\end{c}\end{b*}", r"\begin{b*}\begin{c}\{\}\end{c}\end{b*}"),
    ],
)
def test_a_formula_is_shown_as_it_came(markdown: str, formula: str) -> None:
    assert formulas(markdown)[0] == formula


@pytest.mark.parametrize(
    "formula",
    [
        "\\[\nA = \\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}\n\\]",
        "$$\nx\n=\ny\n$$",
        "$$\n- a\n+ b\n> c\n# d\n1. e\n```\n$$",
        "\\[\na \\\\\n---\n\\]",
        "\\begin{align}\na &= b \\\\\n  &- c\n\\end{align}",
        "\\(a\n- b\\)",
    ],
)
@pytest.mark.parametrize("place", ["{}", "text\n{}\nmore", "text {} more\n", "- item\n  {}\n- next", "> {}\n", "1. {}"])
def test_a_formula_of_several_lines_is_kept_together(formula: str, place: str) -> None:
    before = place[: place.index("{}")].rsplit("\n", 1)[-1]
    indent = before if before.strip() in ("", ">") else " " * len(before) if before.strip() == "1." else ""
    assert formulas(place.replace("{}", formula.replace("\n", "\n" + indent))) == [formula]


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 to $10.",
        "costs $5 and $10",
        "$5/$10 or US$5** and US$6**",
        "between $ 5 and 10$",
        "($), ($$) or ($$$)",
        "$HOME and $PATH",
        "a $ b $ c",
        "$",
        "$$",
        "$$$$",
        "$x",
    ],
)
def test_money_and_lone_dollars_stay_text(text: str) -> None:
    assert whole(text) == f'<p dir="auto">{text}</p>\n'


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        (r"\$5 and 6\$", "$5 and 6$"),
        (r"main\(\) and \[ \]", "main() and [ ]"),
        (r"\\(a*b*\\)", r"\(a<em>b</em>\)"),
        (r"`\(a_1\)` $`x`$", r"<code>\(a_1\)</code> $<code>x</code>$"),
        (r"\(a and *b*", "(a and <em>b</em>"),
        (r"\[a and *b*", "[a and <em>b</em>"),
        (r"\begin{a} *b*", r"\begin{a} <em>b</em>"),
        (r"$5, run `echo $HOME`", "$5, run <code>echo $HOME</code>"),
    ],
)
def test_what_is_no_formula_is_markdown(markdown: str, html: str) -> None:
    assert whole(markdown) == f'<p dir="auto">{html}</p>\n'


@pytest.mark.parametrize("opened", ["\\[", "$$", "\\begin{a}"])
def test_a_formula_does_not_reach_over_a_blank_line(opened: str) -> None:
    assert whole(f"Price: {opened}\n- a\n\n{opened}").count("<li>") == 1


@pytest.mark.parametrize("formula", ["\\[\n- a\n+ b \\\\\n# c\n\\]", "$$\n1. a\n---\n$$", "\\begin{a}\n> b\n\\end{a}"])
@pytest.mark.parametrize("place", ["1. item\n{}\n2. next", "1. a\n   - b\n{}\n2. c", "> - a\n> {}\n> - b"])
def test_a_formula_may_stand_in_an_item_without_its_indentation(formula: str, place: str) -> None:
    quoted = formula.replace("\n", "\n> ") if place.startswith(">") else formula
    html = whole(place.replace("{}", quoted))
    assert ["".join(span.itertext()) for span in parsed(html).iter("span")] == [formula]
    assert html.count("<li>") == place.count(". ") + place.count("- ")


def test_the_lines_of_an_item_end_no_formula_that_began_in_another() -> None:
    assert whole("- \\[ a\n- b \\]\n").count("<li>") == 2


def test_bars_of_a_formula_divide_no_cells() -> None:
    html = whole("|a|b|\n|-|-|\n| $|x|_1$ | \\(\\|y\\|\\) |\n| \\| | `c` |\n")
    assert ["".join(cell.itertext()) for cell in parsed(html).iter("td")] == ["$|x|_1$", "\\(\\|y\\|\\)", "|", "c"]


def test_a_display_formula_says_that_it_is_one() -> None:
    assert '<span class="math">\\(x\\)</span>' in whole("\\(x\\) $$y$$")
    assert '<span class="math math-display">$$y$$</span>' in whole("\\(x\\) $$y$$")


def test_a_formula_that_still_grows_is_shown_as_it_came() -> None:
    renderer = BlockRenderer()
    renderer.feed("Rows:\n\\[\na \\\\\n= \\{b\\}\n")
    assert "\\[\na \\\\\n= \\{b\\}" in text_of(renderer.views(0)[0].html)


_INSIDE = st.lists(
    st.sampled_from(
        ["x", "_1", "*", "**", "~~", "`", "\\\\", "\\{", "\\}", "\\_", "\\,", "[", "](a)", "<b>", "&amp;", "<", "|",
         "#", "^2", "!", "\\frac", " ", "  ", "http://a.example", "<http://a.example>", "注：", "\\%", "\\;", "'", '"'])
    | st.characters(codec="ascii", categories=["L", "N"]),
    max_size=12,
).map("".join)  # fmt: skip
_DELIMITERS = st.sampled_from([("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$"), ("\\begin{a}", "\\end{a}"), ("$", "$")])


@untimed
@given(inside=_INSIDE, delimiters=_DELIMITERS, around=st.sampled_from(["", "**", "注：", " "]))
@example("\\{x \\mid x > 0\\}", ("$", "$"), "")
def test_no_character_of_a_formula_is_lost(inside: str, delimiters: tuple[str, str], around: str) -> None:
    inside = inside.replace("`", "") if delimiters[0] == "$" else inside
    formula = f"{delimiters[0]}x{inside}y{delimiters[1]}"
    assert formula in text_of(whole(f"{around}{formula}{around}"))


_LINES = st.lists(
    st.sampled_from(["- a", "+ b", "=", "---", "> c", "# d", "1. e", "\\\\", "x", "    y", "&= z", "|a|", "***"]),
    max_size=6,
)  # fmt: skip


@untimed
@given(inside=_LINES, delimiters=_DELIMITERS.filter(lambda both: both[0] != "$"), size=st.integers(1, 9))
def test_no_line_of_a_formula_is_taken_for_another_block(
    inside: list[str], delimiters: tuple[str, str], size: int
) -> None:
    formula = "\n".join([f"{delimiters[0]}x", *inside, f"{delimiters[1]}"])
    text = f"so\n{formula}\nand\n\nmore"
    page = stream(text[i : i + size] for i in range(0, len(text), size))
    assert page.html == whole(text)
    assert formula in text_of(page.html)


@pytest.mark.parametrize(
    "text",
    ["$" * 60_000, "\\(" * 30_000, "\\[\n" * 20_000, "$\\$" * 20_000, "$a " * 20_000,
     "\\begin{a}\n" * 6000, "$a`" * 20_000, "a\n\\[\n" * 12_000, "- \\[\n" * 12_000, "\\(\n" * 20_000 + "\\)",
     "\\[\\\\]" * 12_000, "|a|\n|-|\n" + "|$a|$|\n" * 8000],
    ids=range(12),
)  # fmt: skip
def test_64_kb_of_half_formulas_take_linear_time(text: str) -> None:
    began = time.process_time()
    whole(text)
    # The dearest of them takes 0.7 s.
    assert time.process_time() - began < 3
