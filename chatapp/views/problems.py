"""Problem documents as responses, and Django's own error pages: a document under /api, else a page."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from django.core.exceptions import RequestDataTooBig
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.views import defaults
from django.views.csrf import csrf_failure as csrf_failure_page

from chatapp.errors import Problem, not_found
from chatapp.seldom import Seldom
from streaming.errors import LogUnavailable

logger = logging.getLogger(__name__)
_no_log, _no_database = Seldom(logger), Seldom(logger)

View: TypeAlias = Callable[..., Coroutine[Any, Any, HttpResponseBase]]


def route(**methods: View) -> View:
    """Make one view of a handler for each HTTP method. Whatever goes wrong in it becomes a problem document."""
    allowed = {**methods, "HEAD": methods["GET"]} if "GET" in methods else methods

    async def view(request: HttpRequest, **ids: Any) -> HttpResponseBase:
        handler = allowed.get(request.method or "")
        if handler is None:
            response = response_of(Problem("method_not_allowed", f"Use {' or '.join(sorted(methods))} here."))
            response["Allow"] = ", ".join(sorted(allowed))
            return response
        try:
            return await handler(request, **ids)
        except Exception as exc:  # noqa: BLE001 - the boundary: an API answers in JSON whatever happens.
            return response_of(_problem_of(exc, request))

    return view


def response_of(problem: Problem) -> HttpResponse:
    headers = {"Retry-After": str(problem.members["retry_after"])} if "retry_after" in problem.members else None
    return JsonResponse(
        problem.to_dict(), status=problem.status, content_type="application/problem+json", headers=headers
    )


async def no_such_route(_request: HttpRequest, **_: Any) -> HttpResponse:
    return response_of(not_found())


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if not _is_api(request):
        return defaults.bad_request(request, exception)
    if isinstance(exception, RequestDataTooBig):
        return response_of(_too_large())
    return response_of(Problem("bad_request", "The request is not valid."))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return response_of(not_found()) if _is_api(request) else defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponseBase:
    return response_of(_internal()) if _is_api(request) else defaults.server_error(request)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponseBase:
    if not _is_api(request):
        return csrf_failure_page(request, reason)
    detail = (
        "The request comes from no page of this server. Reload the page and try again. Behind a proxy, whoever runs "
        "the server names its public address in SIDESTREAM_ORIGINS."
    )
    return response_of(Problem("csrf_failed", detail))


def _problem_of(exc: Exception, request: HttpRequest) -> Problem:
    match exc:
        case Problem():
            return exc
        case Http404():
            return not_found()
        case RequestDataTooBig():
            return _too_large()
        case LogUnavailable():
            _no_log.warning("%s: %s", request.path, exc)
            return Problem("log_unavailable", "The server cannot reach its log just now. Try again in a moment.")
        case OperationalError() if _passes(exc):
            _no_database.warning("%s: the database refused: %s", request.path, exc)
            detail = "The server cannot use its database just now. Try again in a moment."
            return Problem("database_unavailable", detail)
        case _:
            logger.error("%s failed", request.path, exc_info=exc)
            return _internal()


def _passes(exc: OperationalError) -> bool:
    """
    Is the database only locked, restarting or out of connections?

    SQLite has this class for its other faults too, a missing table among them.
    """
    name: str = getattr(exc.__cause__, "sqlite_errorname", "")
    return not name or name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _too_large() -> Problem:
    return Problem("body_too_large", "A request may have at most 1 MiB.")


def _internal() -> Problem:
    return Problem("internal_error", "Something went wrong here. It was logged.")


def _is_api(request: HttpRequest) -> bool:
    return request.path_info.startswith("/api/")
