"""Everything that can go wrong with an upstream: code, words for a person, and whether trying again can help.

Our sentence never holds the upstream's words, but for the name of a parameter. They go to `said`, for whoever
unfolds them, and to `detail`, which is for the log; both with secrets masked.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from streaming.errors import UpstreamError
from streaming.markdown.clean import clean
from streaming.upstream.unicode import valid


class Fault(NamedTuple):
    message: str
    retryable: bool = False
    naming: str = ""  # The message where it is known which parameter it was.


_OPERATOR = "Ask the operator to check"

FAULTS: Final[dict[str, Fault]] = {
    # The way there.
    "connect_refused": Fault(
        "The model service is not running, or refuses connections. Start it, or try again later.", True
    ),
    "connect_failed": Fault("The model service could not be reached. Try again later.", True),
    "connect_timeout": Fault("The model service did not accept a connection in time. Try again later.", True),
    "dns_failure": Fault(f"The address of the model service does not exist. {_OPERATOR} it.", True),
    "tls_failure": Fault(
        f"No secure connection to the model service could be made. {_OPERATOR} its address and certificate."
    ),
    "proxy_failure": Fault(
        f"The proxy on the way to the model service does not let the call through. {_OPERATOR} SIDESTREAM_PROXY.", True
    ),
    "connection_lost": Fault(
        "The connection to the model service broke before the answer was complete. Try again.", True
    ),
    "call_closed": Fault("The call was closed before the answer was complete."),
    # Time and size.
    "first_byte_timeout": Fault("The model service accepted the prompt and then sent nothing. Try again later.", True),
    "idle_timeout": Fault("The model service stopped sending in the middle of the answer. Try again.", True),
    "no_payload_timeout": Fault(
        "The model service kept the connection open but sent no more of the answer. Try again.", True
    ),
    "total_timeout": Fault("The answer took longer than this server allows. Ask for a shorter one."),
    "line_too_long": Fault(
        "The model service sent one piece larger than this server accepts, so the answer was stopped. Try again."
    ),
    "answer_too_long": Fault(
        "The answer became longer than this server stores, so it was stopped. Ask for a shorter one."
    ),
    "tool_call_too_long": Fault("A tool call became larger than this server accepts, so the answer was stopped."),
    # What it said by HTTP status, or by an error object in the stream.
    "unauthorized": Fault(f"The model service refused the key. {_OPERATOR} the key of this model."),
    "forbidden": Fault(f"The key may not use this model. {_OPERATOR} the rights of the key."),
    "model_not_found": Fault(f"The model service does not know this model. {_OPERATOR} its name and address."),
    "bad_request": Fault(
        "The model service did not accept the request. Change the parameters or choose another model.",
        naming="The model service did not accept {}. Change it, leave it empty, or choose another model.",
    ),
    "context_too_long": Fault(
        "The conversation is longer than this model can read. Start a new one, or choose another model."
    ),
    "payload_too_large": Fault("The request is larger than the model service accepts. Send a shorter prompt."),
    "rate_limited": Fault(
        "The model service takes no more requests for the moment. Wait a little, then try again.", True
    ),
    "quota_exhausted": Fault(f"The quota of this key is used up. {_OPERATOR} the account."),
    "overloaded": Fault("The model service is overloaded. Wait a little, then try again.", True),
    "upstream_error": Fault("The model service failed. Try again.", True),
    "upstream_reported": Fault("The model service reported an error in the middle of the answer. Try again.", True),
    "upstream_interrupted": Fault("The model service broke the answer off. Try again.", True),
    "malformed_tool_call": Fault("The model made a tool call that the model service could not read. Try again.", True),
    # What it sent that is no answer.
    "not_a_stream": Fault(
        f"The address answers, but not as a model service does. {_OPERATOR} the address of this model."
    ),
    "bad_address": Fault(f"The address of the model service is not one that can be called. {_OPERATOR} it."),
    "redirect_refused": Fault(
        f"The model service points to another address, which is never followed. {_OPERATOR} the address."
    ),
    "malformed_stream": Fault(
        "The model service sent something that cannot be read, so the answer was stopped. Try again.", True
    ),
    "hole_in_answer": Fault(
        "A part of the answer did not come, or came in a form that cannot be read, so the answer is not whole. "
        "Try again, or choose another model."
    ),
    "spliced_stream": Fault("The model service mixed two answers into one, so this one was stopped. Try again.", True),
    "incomplete_stream": Fault(
        "The answer broke off: the model service never said that it was complete. Try again.", True
    ),
    "response_lost": Fault(
        "The connection to this answer was lost, and the model service does not give the answer back. It may still "
        "exist there, and be charged. Try again for a new one."
    ),
    # What was not even sent.
    "bad_credentials": Fault(
        f"The key of this model cannot be sent: it holds a character that no key has. {_OPERATOR} how it was pasted."
    ),
    "internal_error": Fault(
        "A fault in Sidestream itself ended this answer. Ask the operator to look for it in the log, then try again."
    ),
    "unsupported_parameter": Fault(
        "This model has no such parameter. Remove it, or choose another model.",
        naming="This model does not take {} as it is set. Change it, leave it empty, or choose another model.",
    ),
    "unsupported_images": Fault("This model cannot be sent these images. Remove them, or choose another model."),
    "unsupported_tools": Fault("This model cannot be given tools. Turn them off, or choose another model."),
    "unsupported_json_schema": Fault(
        "This model cannot be held to a JSON schema. Ask for plain text, or choose another model."
    ),
    "upstream_resting": Fault(
        "The model service keeps failing and is left alone for a while. Try again later, or choose another model.", True
    ),
}

# What an HTTP status means; services also give these numbers as codes in error objects.
STATUS_CODES: Final[dict[int, str]] = {
    400: "bad_request", 401: "unauthorized", 402: "quota_exhausted", 403: "forbidden", 404: "model_not_found",
    405: "not_a_stream", 413: "payload_too_large", 422: "bad_request", 429: "rate_limited",
    408: "upstream_error", 409: "upstream_error", 425: "upstream_error", 503: "overloaded", 529: "overloaded",
}  # fmt: skip
_NUMBERS: Final = {str(status): code for status, code in STATUS_CODES.items()}
# Words by which services name what they mean, most telling first. Matched in an error's code, type and status.
_WORDS: Final = (
    ("insufficient_quota", "quota_exhausted"),
    ("billing", "quota_exhausted"),
    ("context_length", "context_too_long"),
    ("context_window", "context_too_long"),
    ("rate_limit", "rate_limited"),
    ("resource_exhausted", "rate_limited"),
    ("throttling", "rate_limited"),
    ("overloaded", "overloaded"),
    ("unavailable", "overloaded"),
    ("authentication", "unauthorized"),
    ("unauthenticated", "unauthorized"),
    ("invalid_api_key", "unauthorized"),
    ("permission", "forbidden"),
    ("model_not_found", "model_not_found"),
    ("invalid_request", "bad_request"),
    ("invalid_argument", "bad_request"),
    ("unsupported_parameter", "bad_request"),
    ("unsupported_value", "bad_request"),
    ("badrequest", "bad_request"),
    ("validationexception", "bad_request"),
)
_SECRETS: Final = re.compile(
    r"(?i)\b(?:bearer\s+\S+"
    r"|(?:sk|pk|rk|xai|gsk|hf|org|proj|key|AIza|AKIA|ASIA|nvapi|r8|pplx|csk|fw)[-_]?[A-Za-z0-9_\-]{12,}"
    r"|(?:api[-_]?key|token|secret|authorization|signature)[\"']?\s*[:=]\s*[\"']?[^\s\"',}]+"
    r"|[A-Za-z0-9+/_\-]{40,}={0,2})"
)
DETAIL_CHARS: Final = 2000
SAID_CHARS: Final = 2000
# A known secret is masked before the cut, so that none is cut in half; who knows it cuts then (`without_secrets`).
_UNCUT: Final = 4
# Line ends of any kind, which would otherwise go without a trace.
_LINE_ENDS: Final = re.compile("\r\n?|[\v\f\x85\u2028\u2029]")


def fault(
    code: str, *, detail: str = "", retry_after_s: float | None = None, parameter: str = "", said: str = ""
) -> UpstreamError:
    message, retryable, naming = FAULTS[code]
    if parameter and naming:
        message = naming.format(parameter)
    return UpstreamError(
        code, valid(message), retryable=retryable, retry_after_s=retry_after_s,
        detail=valid(mask_secrets(detail[: _UNCUT * DETAIL_CHARS])),
        said=mask_secrets(clean(_LINE_ENDS.sub("\n", valid(said[: _UNCUT * SAID_CHARS])))).strip(),
    )  # fmt: skip


def reported(
    names: Iterable[object], detail: str, *, default: str = "upstream_reported", said: str = "", parameter: str = ""
) -> UpstreamError:
    """Classify an error object by the `names` it gives itself: its code, type, status."""
    words = [str(name).lower() for name in names if name]
    called = " ".join(words)
    code = next((code for word, code in _WORDS if word in called), default)
    if code == default:
        code = next((by_number for word in words if (by_number := _NUMBERS.get(word))), code)
    return fault(code, detail=f"{called}: {detail}" if called else detail, said=said, parameter=parameter)


def without_secrets(error: UpstreamError, known: Iterable[str]) -> UpstreamError:
    """Mask the secrets that a caller knows in what an error holds of the service's words, and bound those."""
    known = tuple(known)
    error.detail = mask_secrets(error.detail, known)[:DETAIL_CHARS]
    error.said = mask_secrets(error.said, known)[:SAID_CHARS]
    return error


def unexpected(exc: BaseException) -> UpstreamError:
    """
    Take a fault of our own for the end of an answer.

    What an exception says may hold what it failed over, such as a header with its key. So the log is told its
    type, and where it was raised.
    """
    frames = traceback.extract_tb(exc.__traceback__)[-3:]
    places = " ← ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    return fault("internal_error", detail=f"{type(exc).__name__} at {places or 'an unknown place'}")


def mask_secrets(text: str, known: Iterable[str] = ()) -> str:
    """Hide what is, or may be, a secret: `known` values, and everything shaped like a key or a token."""
    for value in known:
        if value:
            text = text.replace(value, "***")
    return _SECRETS.sub("***", text)
