"""What services say of an error, in the shapes that they say it in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.upstream.faults import FAULTS
from streaming.upstream.http_faults import from_response
from streaming.upstream.reports import named_in, report_in, report_of_body

INVALID = {"type": "invalid_request_error", "code": "unsupported_value"}


@pytest.mark.parametrize(
    ("document", "words", "parameter"),
    [
        # OpenAI, and those who took after it.
        ({"error": {**INVALID, "message": "Only 1 is supported.", "param": "temperature"}}, "Only 1 is supported.",
         "temperature"),
        ({"error": {"message": "Unknown parameter: 'foo_bar'.", "param": "foo_bar"}}, "Unknown parameter: 'foo_bar'.",
         "foo_bar"),
        ({"error": {"message": "too large", "param": "max_completion_tokens"}}, "too large", "max_tokens"),
        ({"error": {"message": "bad", "param": None}}, "bad", ""),
        ({"error": {"message": "bad image", "param": "messages.[0].content"}}, "bad image", "messages.[0].content"),
        ({"error": {"message": "'temperature': number must be at most 2"}}, "'temperature': number must be at most 2",
         "temperature"),
        # Anthropic.
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "temperature: range: 0..1"}},
         "temperature: range: 0..1", "temperature"),
        ({"type": "error", "error": {"message": "`stop_sequences`: each must be text"}},
         "`stop_sequences`: each must be text", "stop"),
        # Gemini, alone and in its array.
        ({"error": {"code": 400, "message": "Invalid value", "status": "INVALID_ARGUMENT", "details": [
            {"@type": "type.googleapis.com/google.rpc.BadRequest",
             "fieldViolations": [{"field": "generation_config.top_p", "description": "out of range"}]}]}},
         "Invalid value", "top_p"),
        ([{"error": {"code": 400, "message": "* maxOutputTokens must be positive"}}],
         "* maxOutputTokens must be positive", "max_tokens"),
        # Cohere, Bedrock, Ollama.
        ({"message": "invalid request: temperature must be between 0 and 1.0"},
         "invalid request: temperature must be between 0 and 1.0", "temperature"),
        ({"message": "Value '2.0' at 'inferenceConfig.topP' failed to satisfy constraint"},
         "Value '2.0' at 'inferenceConfig.topP' failed to satisfy constraint", "top_p"),
        ({"error": 'option "num_predict" must be of type integer'}, 'option "num_predict" must be of type integer',
         "max_tokens"),
        # vLLM, older and newer; Mistral; FastAPI.
        ({"object": "error", "message": "temperature must be non-negative, got -1.0", "type": "BadRequestError",
          "param": None, "code": 400}, "temperature must be non-negative, got -1.0", "temperature"),
        ({"object": "error", "message": {"detail": [{"type": "less_than_equal", "loc": ["body", "top_p"],
          "msg": "Input should be less than or equal to 1"}]}, "type": "invalid_request_error"},
         "body.top_p: Input should be less than or equal to 1", "top_p"),
        ({"detail": [{"loc": ["body", "max_tokens"], "msg": "field required"},
                     {"loc": ["body", "seed"], "msg": "not an int"}]},
         "body.max_tokens: field required\nbody.seed: not an int", "max_tokens"),
        ({"detail": "reasoning_effort is not supported"}, "reasoning_effort is not supported", "reasoning_effort"),
        ({"errors": [{"message": "`seed` is not allowed"}]}, "`seed` is not allowed", "seed"),
    ],
)  # fmt: skip
def test_words_and_parameter_are_found_in_every_shape(document: Any, words: str, parameter: str) -> None:
    report = report_in(document)
    assert report is not None
    assert (report.words, report.parameter) == (words, parameter)
    error = from_response(400, {"content-type": "application/json"}, json.dumps(document).encode())
    assert (error.said, f"did not accept {parameter}. " in error.message) == (words, bool(parameter))


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        ("Please stop sending so many requests.", ""),
        ("The seed of the problem lies elsewhere.", ""),
        ("`stop` is not supported", "stop"),
        ("Unrecognized request argument supplied: 'logit_bias'", "logit_bias"),
        ('Unknown name "frequencyPenalty": Cannot find field.', "frequency_penalty"),
        ("unexpected keyword 'top_k' in request", "top_k"),
        ("", ""),
    ],
)
def test_a_sentence_names_a_parameter_only_where_it_means_one(words: str, parameter: str) -> None:
    assert named_in(words) == parameter


def test_every_parameter_that_a_pane_may_set_is_found_in_a_sentence() -> None:
    names = ("temperature", "top_p", "top_k", "min_p", "repeat_penalty", "max_tokens", "seed", "stop",
             "presence_penalty", "frequency_penalty", "reasoning_effort")  # fmt: skip
    assert [named_in(f"'{name}' is not supported with this model") for name in names] == list(names)


@pytest.mark.parametrize("code", [code for code, fault in FAULTS.items() if fault.naming])
def test_a_sentence_with_a_parameter_is_still_a_sentence(code: str) -> None:
    assert FAULTS[code].naming.count("{}") == 1
    assert FAULTS[code].naming.endswith(".")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["temperature", "body"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "errors", "message", "detail", "loc", "param", "code", "msg", "details"]), inner
        )
    ),
    max_leaves=15,
)


@given(values)
def test_any_document_is_read_without_a_fault(document: Any) -> None:
    report = report_in(document)
    assert report is None or (isinstance(report.words, str) and isinstance(report.parameter, str))


@pytest.mark.parametrize("body", [b"", b"<html>", b"[" * 100_000, b"\xff", b"{}", b"3", b"null"])
def test_what_says_no_error_is_none(body: bytes) -> None:
    assert report_of_body(body) is None
