"""One map from what httpx raises, and from HTTP status codes, to the codes of faults.py."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime

import httpx

from streaming.errors import UpstreamError
from streaming.upstream.faults import STATUS_CODES, fault, reported
from streaming.upstream.no_stream import shown
from streaming.upstream.reports import Report, report_of_body

# Where the body can say more than the status does; elsewhere the status is clear.
_BODY_SAYS_MORE = frozenset({400, 422, 429})
# A service that asks for a longer pause than this is not worth waiting for.
LONGEST_RETRY_AFTER_S = 3600.0

_OWN_AUTHORITY = "If an authority of your own has signed it, name the file of that authority in SIDESTREAM_CA_FILE."


def from_response(status: int, headers: Mapping[str, str], body: bytes) -> UpstreamError:
    """Say why a response is no stream."""
    kind = headers.get("content-type", "")
    detail = f"HTTP {status} {kind}: {shown(body)}"
    if status < httpx.codes.MULTIPLE_CHOICES:
        return fault("not_a_stream", detail=detail)
    if status < httpx.codes.BAD_REQUEST:
        return fault("redirect_refused", detail=detail)
    code = STATUS_CODES.get(status, "upstream_error" if status >= httpx.codes.INTERNAL_SERVER_ERROR else "bad_request")
    report = report_of_body(body) or Report(words=_plain_words(kind, body))
    if status in _BODY_SAYS_MORE:
        named = reported(report.names, "", default=code).code
        code = code if named == "bad_request" else named  # The status says as much, or more.
    return fault(code, detail=detail, retry_after_s=retry_after(headers), said=report.words, parameter=report.parameter)


def from_httpx(exc: Exception) -> UpstreamError:
    causes = list(_causes(exc))
    detail = " ← ".join(f"{type(cause).__name__}: {cause}" for cause in causes)
    if isinstance(exc, httpx.DecodingError):
        return fault("malformed_stream", detail=detail)
    if isinstance(exc, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return fault("bad_address", detail=detail)
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return fault("tls_failure", detail=f"{detail}. {_OWN_AUTHORITY}")
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return fault("tls_failure", detail=detail)
    if isinstance(exc, httpx.ProxyError):
        return fault("proxy_failure", detail=detail)
    if not isinstance(exc, httpx.ConnectError):
        return fault("connection_lost", detail=detail)
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return fault("dns_failure", detail=detail)
    refused = any(isinstance(cause, ConnectionRefusedError) for cause in causes)
    return fault("connect_refused" if refused else "connect_failed", detail=detail)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read how long to wait, in seconds; None where the service did not say, or said nonsense."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if value:
            seconds = _seconds(value, unit)
            if seconds is not None and 0 <= seconds <= LONGEST_RETRY_AFTER_S:
                return seconds
    return None


def _seconds(value: str, unit: float) -> float | None:
    try:
        return float(value) * unit
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def _plain_words(kind: str, body: bytes) -> str:
    """Give a body that is meant to be read. A web page is not: what it says is between its tags."""
    is_text = kind.startswith("text/plain") or not kind
    return body.decode("utf-8", "replace") if is_text and not body.lstrip().startswith(b"<") else ""


def _causes(exc: BaseException | None) -> Iterator[BaseException]:
    """Walk to the bottom: httpx wraps httpcore wraps anyio wraps the operating system, some of it in groups."""
    seen: set[int] = set()
    waiting = [exc]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        waiting += [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            waiting += current.exceptions
