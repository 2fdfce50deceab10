from __future__ import annotations

import pytest

from streaming.upstream.faults import FAULTS, STATUS_CODES, fault, mask_secrets, reported
from streaming.upstream.finish import FAILURES


@pytest.mark.parametrize("code", FAULTS)
def test_each_fault_says_what_happened_and_ends_as_a_sentence(code: str) -> None:
    assert FAULTS[code].message.endswith(".")


@pytest.mark.parametrize("code", [*STATUS_CODES.values(), *FAILURES.values()])
def test_every_code_that_a_map_names_exists(code: str) -> None:
    assert code in FAULTS


@pytest.mark.parametrize(
    "secret",
    [
        "Bearer abc.def-123", "sk-proj-0123456789abcdef", "org-AbCdEfGhIjKlMnOp", "proj_AbCdEfGhIjKlMnOp",
        "AIzaSyA0123456789abcdefghij", "AKIA0123456789ABCDEF", "xai-0123456789abcdef", "gsk_0123456789abcdef",
        "api_key=hunter2hunter2", '"token": "hunter2"', "aGVsbG8gd29ybGQgaGVsbG8gd29ybGQgaGVsbG8gd29ybGQ=",
    ],
)  # fmt: skip
def test_what_looks_like_a_secret_is_masked(secret: str) -> None:
    assert secret not in mask_secrets(f"refused: {secret}, try again")


def test_a_known_secret_is_masked_whatever_it_looks_like() -> None:
    assert mask_secrets("the key is swordfish.", ("swordfish",)) == "the key is ***."


def test_plain_words_stay_readable() -> None:
    text = "The model gpt-4o-mini does not support max_tokens; use max_completion_tokens (see documentation)."
    assert mask_secrets(text) == text


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["rate_limit_exceeded", "tokens"], "rate_limited"),
        (["overloaded_error"], "overloaded"),
        ([None, "UNAVAILABLE"], "overloaded"),
        ([503], "overloaded"),
        (["429"], "rate_limited"),
        (["server_error"], "upstream_reported"),
        (["unsupported_value", "invalid_request_error"], "bad_request"),
        (["rate_limit_exceeded", "invalid_request_error"], "rate_limited"),
        (["BadRequestError", 400], "bad_request"),
        ([], "upstream_reported"),
    ],
)
def test_an_error_is_classified_by_the_names_it_gives_itself(names: list[object], code: str) -> None:
    assert reported(names, "words").code == code


def test_a_refused_parameter_is_named() -> None:
    assert "top_k" in fault("unsupported_parameter", parameter="top_k").message
