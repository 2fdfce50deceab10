"""The growing text: whatever the cuts and the clock, the end is the whole, and what is sealed stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streaming.events import BlockView
from streaming.markdown import BlockRenderer, Rendered
from streaming.markdown.pace import OPEN_ALLOWANCE, OPEN_INTERVAL_MS, OPEN_SHARE, WORK_ALLOWANCE, WORK_SHARE
from streaming.snapshot import Snapshot, fold_view
from tests.streaming.markdown_page import Page, stream, untimed, whole

_LINES = [
    "word", "two *words*", "  indented", "    code", "\tcode", "# heading", "# a | b", "===", "---", "--|--", "***",
    "- item", "- ", "* other", "  - inner", "    - deeper", "1. one", "2) two", "  para in item", "> quote", "> - list",
    ">", "```", "```py", "````md", "~~~", "x = 1", "| a | b |", "|---|:-:|", "| 1 | 2 |", "a | b", "[a]", "[a][b]",
    "[a]: https://a.example", "[b]: https://b.example 'title'", "[a]:", '"title"', "'open", "  [c]: https://c.example",
    "> [d]: https://d.example", "[c] and [d]", "<https://e.example>", "![i](https://e.example/i.png)", "<div>",
    "- ```", "  ```", "> ```", "> x",
    "**注意：**请", "这*「重", "点」*~~旧。~~新", "\\[", "\\]", "a \\[ b", "c \\] d", "$$", "=", "-", "+ y", "\\\\",
    "\\begin{a}", "\\end{a}", "\\(x_1", "2_y\\) z", "$x_1$ and $5", "| $|x|$ | b |", "> \\[", "> \\]", "> =", "  $$",
    "  + z", "`\\[`", "https://f.example/a_b, c", "见https://g.example。", "[h https://h.example",
    "é\u202eß", "\ud83d", "a  ", "b\\", "", "", "", "",
]  # fmt: skip
_ENDS = ["\n", "\n", "\n", "\r\n", "\r", "\n\n"]
lines = st.tuples(st.sampled_from(_LINES), st.sampled_from(_ENDS)).map("".join)
documents = st.tuples(st.lists(lines, max_size=14), st.sampled_from(_LINES)).map(lambda d: "".join(d[0]) + d[1])
steps = st.lists(st.tuples(st.integers(1, 12), st.sampled_from([0, 60, 250, 1000])), min_size=1, max_size=40)


def play(text: str, by: list[tuple[int, int]]) -> tuple[Page, BlockRenderer]:
    """Feed a text in the sizes and at the times that `by` gives, over and over."""
    page, renderer, at, now, i = Page(), BlockRenderer(), 0, 0, 0
    while at < len(text):
        size, wait = by[i % len(by)]
        renderer.feed(text[at : at + size])
        at, now, i = at + size, now + wait, i + 1
        page.apply(renderer.views(now))
    return page, renderer


@untimed
@given(text=documents, by=steps)
def test_the_end_is_the_whole_for_any_cut_and_any_clock(text: str, by: list[tuple[int, int]]) -> None:
    page, renderer = play(text, by)
    page.apply(renderer.finish(), finishing=True)
    assert page.html == whole(text)
    assert all(page.sealed)


@untimed
@given(text=documents, by=steps)
def test_at_the_end_all_text_is_shown(text: str, by: list[tuple[int, int]]) -> None:
    page, renderer = play(text, by)
    page.apply(renderer.finish(), finishing=True)
    assert page.shown == len(text)


@untimed
@given(text=documents, by=steps)
def test_views_fold_to_what_the_page_has(text: str, by: list[tuple[int, int]]) -> None:
    page, renderer = play(text, by)
    page.apply(renderer.finish(), finishing=True)
    snapshot = Snapshot("g")
    for each in page.seen:
        snapshot = fold_view(snapshot, BlockView("g", 1, each.index, each.html, each.sealed, each.length))
    assert "".join(block.html for block in snapshot.blocks) == whole(text)


@untimed
@given(text=documents, by=steps)
def test_sealed_blocks_show_exactly_the_text_up_to_their_length(text: str, by: list[tuple[int, int]]) -> None:
    text = text.replace("]:", "]")
    page, _ = play(text, by)
    sealed = sum(page.sealed)
    end = page.ends[sealed - 1] if sealed else 0
    assert "".join(page.blocks[:sealed]) == whole(text[:end])


@untimed
@given(text=documents)
def test_a_text_without_definitions_is_not_given_again_at_the_end(text: str) -> None:
    page, renderer = play(text.replace("]:", "]"), [(3, 300)])
    sealed = sum(page.sealed)
    given_again = [each for each in renderer.finish()[:-1] if each.index < sealed]
    assert given_again == []


@untimed
@given(text=documents, by=steps, copies=st.integers(1, 40))
def test_parsing_reads_a_bounded_multiple_of_the_text(text: str, by: list[tuple[int, int]], copies: int) -> None:
    text *= copies
    _, renderer = play(text, by)
    assert renderer.parsed <= WORK_SHARE * len(text) + WORK_ALLOWANCE


def test_parsing_and_showing_one_long_list_stay_linear() -> None:
    for count in (500, 4000):
        text = "".join(f"- item {i} of a list that has no end\n" for i in range(count))
        page, renderer = play(text, [(40, 300)])
        assert renderer.parsed <= WORK_SHARE * len(text) + WORK_ALLOWANCE
        showings = sum(len(each.html) for each in page.seen)
        # The last showing may go over by its own markup.
        assert showings <= OPEN_ALLOWANCE + OPEN_SHARE * len(text) + 2 * len(text)


def test_an_open_paragraph_without_line_end_is_never_parsed() -> None:
    _, renderer = play("word " * 5000, [(5, 300)])
    assert renderer.parsed == 0


def views(renderer: BlockRenderer, text: str, now_ms: int) -> list[Rendered]:
    renderer.feed(text)
    return renderer.views(now_ms)


def test_a_paragraph_is_sealed_by_its_blank_line() -> None:
    assert views(BlockRenderer(), "one\n\n", 0) == [Rendered(0, '<p dir="auto">one</p>\n', True, 5)]


def test_a_heading_is_sealed_by_its_own_line() -> None:
    assert views(BlockRenderer(), "# one\ntw", 0) == [Rendered(0, '<h1 dir="auto">one</h1>\n', True, 6)]


def test_a_heading_that_may_become_a_table_waits() -> None:
    page = stream(["# a | b\n", "--|--\n", "1 | 2\n"])
    assert "<table" in page.html


def test_nothing_of_a_line_that_has_not_ended_is_shown() -> None:
    renderer = BlockRenderer()
    assert views(renderer, "- one\n- tw", 0) == [Rendered(0, '<ul dir="auto">\n<li>one</li>\n</ul>\n', False, 6)]


def test_the_open_block_is_shown_again_only_after_a_while() -> None:
    renderer = BlockRenderer()
    views(renderer, "- one\n", 0)
    assert views(renderer, "- two\n", OPEN_INTERVAL_MS - 1) == []
    assert renderer.due(OPEN_INTERVAL_MS)
    assert [each.length for each in renderer.views(OPEN_INTERVAL_MS)] == [12]


def test_sealing_does_not_wait() -> None:
    renderer = BlockRenderer()
    views(renderer, "- one\n", 0)
    assert [each.sealed for each in views(renderer, "\n# two\n", 1)] == [True, True]


def test_nothing_is_due_without_news() -> None:
    renderer = BlockRenderer()
    views(renderer, "- one\n", 0)
    assert not renderer.due(10_000)


def test_the_first_row_of_a_table_is_not_shown_as_a_paragraph() -> None:
    assert views(BlockRenderer(), "| a | b |\n", 0) == []


def test_an_open_fence_is_one_empty_code_block_that_ends_with_its_opening_line() -> None:
    renderer = BlockRenderer()
    opened = '<pre><code class="language-py"></code></pre>\n'
    assert views(renderer, "```py\nx = 1\n", 0) == [Rendered(0, opened, False, 6)]


def test_an_open_fence_is_not_parsed_again_before_it_closes() -> None:
    renderer = BlockRenderer()
    views(renderer, "```py\n", 0)
    before = renderer.parsed
    assert all(views(renderer, f"x = {i}\n\n- a\n", i * 1000) == [] for i in range(50))
    assert renderer.parsed == before


def test_a_fence_is_sealed_in_colour_when_it_closes() -> None:
    renderer = BlockRenderer()
    views(renderer, "```py\nreturn\n", 0)
    (sealed,) = views(renderer, "```\n", 0)
    assert sealed.sealed
    assert '<span class="tok-k">return</span>' in sealed.html


def test_three_ticks_close_no_fence_of_four() -> None:
    renderer = BlockRenderer()
    views(renderer, "````md\n```py\nx\n```\n", 0)
    (sealed,) = views(renderer, "````\n", 0)
    assert sealed.html == '<pre><code class="language-md">```py\nx\n```\n</code></pre>\n'


def test_code_in_an_open_block_has_no_colour_yet() -> None:
    (opened,) = views(BlockRenderer(), "- ```py\n  return\n  ```\n", 0)
    assert "tok-" not in opened.html


def test_a_definition_changes_at_the_end_only_the_blocks_that_use_it() -> None:
    renderer = BlockRenderer()
    views(renderer, "one\n\n[a]\n\ntwo\n\n", 0)
    renderer.feed("[a]: https://a.example\n\n")
    assert [(each.index, "href" in each.html) for each in renderer.finish()] == [(1, True)]


def test_a_definition_is_known_to_the_text_behind_it_at_once() -> None:
    renderer = BlockRenderer()
    views(renderer, "[a]: https://a.example\n\n", 0)
    assert "href" in views(renderer, "[a]\n\n", 0)[0].html


def test_what_turns_out_to_be_a_definition_is_taken_away_until_the_end() -> None:
    renderer, page = BlockRenderer(), Page()
    for at, piece in enumerate(["[a]:\n", "https://a.example\n", "\n"]):
        page.apply(views(renderer, piece, at * 300))
    assert ([each.html for each in page.seen], page.html) == (['<p dir="auto">[a]:</p>\n', ""], "")
    page.apply(renderer.finish(), finishing=True)
    assert ">https://a.example</a>" in page.html


def test_lengths_count_the_text_as_it_came() -> None:
    (sealed,) = views(BlockRenderer(), "\u202eone\x00\r\n\r\n", 0)
    assert (sealed.html, sealed.length) == ('<p dir="auto">one</p>\n', 9)


def test_half_a_line_end_waits_for_the_other_half() -> None:
    renderer = BlockRenderer()
    assert views(renderer, "one\r", 0) == []
    assert [each.length for each in views(renderer, "\n\r\n", 0)] == [7]


def test_an_empty_text_has_no_blocks() -> None:
    assert BlockRenderer().finish() == []
