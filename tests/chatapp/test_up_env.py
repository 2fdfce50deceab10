"""Environment variables are understood, or refused by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from chatapp.env import PATHS, read_bool, read_choice, read_int, read_list, read_path, read_secret, read_str


def test_an_empty_variable_counts_as_not_set() -> None:
    assert read_str("NAME", "default", environ={"NAME": " "}) == "default"


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("TRUE", True), ("yes", True), ("on", True), ("0", False), ("Off", False)]
)
def test_words_for_true_and_false_are_understood(text: str, value: bool) -> None:
    assert read_bool("NAME", not value, environ={"NAME": text}) is value


def test_a_word_that_is_neither_true_nor_false_is_refused_by_name() -> None:
    with pytest.raises(ImproperlyConfigured, match="NAME must be true or false, not 'maybe'"):
        read_bool("NAME", environ={"NAME": "maybe"})


def test_a_number_is_read() -> None:
    assert read_int("NAME", 1, environ={"NAME": " 12 "}) == 12


@pytest.mark.parametrize("text", ["1.5", "many", "1 000", "0x10"])
def test_what_is_no_whole_number_is_refused_by_name(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="NAME must be a whole number"):
        read_int("NAME", 1, environ={"NAME": text})


def test_a_number_below_its_minimum_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="NAME must be at least 1, not 0"):
        read_int("NAME", 1, minimum=1, environ={"NAME": "0"})


def test_a_number_above_its_maximum_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="NAME must be at most 9, not 10"):
        read_int("NAME", 1, maximum=9, environ={"NAME": "10"})


def test_the_limits_themselves_are_allowed() -> None:
    assert read_int("NAME", 5, minimum=1, maximum=9, environ={"NAME": "9"}) == 9


def test_a_list_is_read_without_the_spaces() -> None:
    assert read_list("NAME", environ={"NAME": "a, b ,c"}) == ["a", "b", "c"]


def test_a_list_that_is_not_set_is_its_default() -> None:
    assert read_list("NAME", ["a"], environ={}) == ["a"]


def test_an_empty_place_in_a_list_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="NAME has an empty place"):
        read_list("NAME", environ={"NAME": "a,,b"})


def test_a_path_becomes_absolute() -> None:
    assert read_path("NAME", Path("/x"), environ={"NAME": "state"}) == Path.cwd() / "state"


def test_a_secret_is_read_from_the_file_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s3cret\n")
    assert read_secret("NAME", environ={"NAME_FILE": str(tmp_path / "key")}) == "s3cret"


def test_a_secret_that_is_not_set_is_its_default() -> None:
    assert read_secret("NAME", "default", environ={}) == "default"


def test_a_secret_file_that_is_missing_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"NAME_FILE names .*none, which cannot be read: No such file"):
        read_secret("NAME", environ={"NAME_FILE": str(tmp_path / "none")})


def test_an_empty_secret_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").touch()
    with pytest.raises(ImproperlyConfigured, match="which is empty"):
        read_secret("NAME", environ={"NAME_FILE": str(tmp_path / "key")})


def test_a_secret_given_twice_is_refused_without_showing_it() -> None:
    with pytest.raises(ImproperlyConfigured) as refusal:
        read_secret("NAME", environ={"NAME": "s3cret", "NAME_FILE": "/x"})
    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize("text", [" leading", "trailing ", "a\tb", "-rf"])
def test_a_path_is_taken_letter_by_letter(text: str) -> None:
    assert read_path("NAME", Path("/x"), environ={"NAME": text}) == Path.cwd() / text


def test_a_path_with_the_line_end_of_its_file_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"NAME ends with a line end \(U\+000D\)"):
        read_path("NAME", Path("/x"), environ={"NAME": "/data\r"})


def test_a_home_that_nobody_knows_is_refused_by_name() -> None:
    with pytest.raises(ImproperlyConfigured, match="NAME must be an absolute path here"):
        read_path("NAME", Path("/x"), environ={"NAME": "~nobody-of-this-name/var"})


def test_every_variable_that_holds_a_path_is_passed_on_as_one() -> None:
    source = (Path(__file__).parents[2] / "chatapp" / "settings.py").read_text(encoding="utf-8")
    paths = re.findall(r'(?:read|optional)_path\(\s*"([A-Z_]+)"', source)
    secrets = [f"{name}_FILE" for name in re.findall(r'read_secret\(\s*"([A-Z_]+)"', source)]
    assert sorted(PATHS) == sorted(paths + secrets)


def test_a_word_is_read_in_any_case() -> None:
    assert read_choice("NAME", "INFO", ["INFO", "ERROR"], environ={"NAME": "error"}) == "ERROR"


def test_another_word_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ImproperlyConfigured, match="NAME must be one of INFO, ERROR, not 'loud'"):
        read_choice("NAME", "INFO", ["INFO", "ERROR"], environ={"NAME": "loud"})


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfs3cret", b"s3cret\r\n", b"\n s3cret \n\n"])
def test_what_an_editor_puts_around_a_secret_is_no_part_of_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key").write_bytes(content)
    assert read_secret("NAME", environ={"NAME_FILE": str(tmp_path / "key")}) == "s3cret"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\xff\xfes\x00", "it is not UTF-8"),
        ("s3\u200bcret".encode(), r"at place 3: U\+200B zero width space"),
        (b"s3cret\nnext", r"at place 7: U\+000A a control character"),
        ("s3cret\u202e".encode(), r"at place 7: U\+202E right-to-left override"),
        (b"\xef\xbb\xbf\r\n", "which is empty"),
    ],
)
def test_a_secret_that_was_copied_badly_is_refused_without_showing_it(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(ImproperlyConfigured, match=why) as refusal:
        read_secret("NAME", environ={"NAME_FILE": str(tmp_path / "key")})
    assert str(refusal.value).startswith("NAME_FILE names ")
    assert "s3" not in str(refusal.value).replace(str(tmp_path), "")


def test_a_variable_is_looked_at_as_a_file_is() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^NAME holds a character that cannot be seen, at place 3: U\+00AD"):
        read_secret("NAME", environ={"NAME": "s3\u00adcret"})
