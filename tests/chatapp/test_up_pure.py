"""The parts of `manage.py up` that touch nothing."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.up.backoff import Backoff
from chatapp.up.lines import MAX_LINE_BYTES, LineSplitter, prefixed
from chatapp.up.service import Service, in_stages

chances = st.floats(min_value=0, max_value=1, exclude_max=True)


@given(failures=st.integers(1, 10_000), chance=chances)
def test_a_wait_is_never_longer_than_the_cap_nor_shorter_than_half_the_first(failures: int, chance: float) -> None:
    backoff = Backoff(first_s=0.2, cap_s=15)
    assert 0.1 <= backoff.delay_s(failures, chance) <= 15


@given(failures=st.integers(1, 100))
def test_waits_do_not_shrink_while_failures_go_on(failures: int) -> None:
    backoff = Backoff()
    assert backoff.delay_s(failures + 1, 0) >= backoff.delay_s(failures, 0)


def test_the_first_restart_comes_within_a_fifth_of_a_second() -> None:
    assert Backoff().delay_s(1, 0) == pytest.approx(0.2)


def test_a_process_that_ran_long_enough_starts_counting_anew() -> None:
    assert Backoff(settled_s=30).failures(9, ran_s=30) == 1


def test_a_process_that_died_early_counts_on() -> None:
    assert Backoff(settled_s=30).failures(9, ran_s=29.9) == 10


@given(data=st.binary(max_size=300), cuts=st.lists(st.integers(0, 300)))
def test_lines_do_not_depend_on_how_the_bytes_were_cut(data: bytes, cuts: list[int]) -> None:
    whole = LineSplitter()
    expected = whole.feed(data) + whole.finish()
    splitter = LineSplitter()
    edges = [0, *sorted(cuts), len(data)]
    pieces = [data[a:b] for a, b in itertools.pairwise(edges)]
    assert [line for piece in pieces for line in splitter.feed(piece)] + splitter.finish() == expected


@given(data=st.binary(max_size=300))
def test_no_line_holds_a_control_character(data: bytes) -> None:
    splitter = LineSplitter()
    text = "".join(splitter.feed(data) + splitter.finish())
    assert not any(ord(char) < 32 or 0x7F <= ord(char) <= 0x9F for char in text)


def test_an_escape_sequence_in_a_log_cannot_command_the_terminal() -> None:
    assert LineSplitter().feed(b"\x1b[2Jgone\n") == [r"\x1b[2Jgone"]


def test_a_line_of_a_process_shows_what_cannot_be_seen() -> None:
    assert LineSplitter().feed("a\u202eb\u2028c\td\n".encode()) == [r"a\u202eb\u2028c\td"]


def test_a_line_that_never_ends_is_given_in_bounded_pieces() -> None:
    lines = LineSplitter().feed(b"x" * (3 * MAX_LINE_BYTES + 1))
    assert [len(line) for line in lines] == [MAX_LINE_BYTES] * 3


def test_a_whole_line_that_is_too_long_comes_in_pieces_too() -> None:
    lines = LineSplitter().feed(b"x" * (MAX_LINE_BYTES + 5) + b"\n")
    assert [len(line) for line in lines] == [MAX_LINE_BYTES, 5]


def test_an_empty_line_stays_a_line() -> None:
    assert LineSplitter().feed(b"a\n\nb\r\n") == ["a", "", "b"]


def test_names_are_aligned() -> None:
    assert prefixed("web", "hello", 6) == "web    | hello"


def test_colour_wraps_only_the_name() -> None:
    assert prefixed("web", "hello", 3, 0) == "\x1b[36mweb |\x1b[0m hello"


def _service(name: str, *after: str) -> Service:
    return Service(name, ["true"], name, None, after)


def _names(*services: Service) -> list[list[str]]:
    return [[service.name for service in stage] for stage in in_stages(services)]


def test_stages_need_only_earlier_ones() -> None:
    web, worker, redis, model = (
        _service("web", "redis"),
        _service("worker", "redis"),
        _service("redis"),
        _service("model"),
    )
    assert _names(web, worker, redis, model) == [["redis", "model"], ["web", "worker"]]


def test_a_service_that_is_not_run_is_not_waited_for() -> None:
    assert _names(_service("web", "redis")) == [["web"]]


def test_services_that_wait_for_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="a, b"):
        in_stages([_service("a", "b"), _service("b", "a")])
