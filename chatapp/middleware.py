"""Middleware without a sync step in the way of streams and requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from inspect import iscoroutinefunction
from io import BytesIO
from typing import Any, TypeAlias, cast

from asgiref.sync import sync_to_async
from csp.middleware import CSPMiddleware
from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware
from django.utils.decorators import sync_and_async_middleware
from whitenoise.middleware import WhiteNoiseMiddleware  # type: ignore[import-untyped]

from chatapp.origins import origin_is_allowed, other_origins
from chatapp.sessions import SessionStore

Handler: TypeAlias = Callable[[HttpRequest], Any]


def on_the_loop(middleware: type[Any]) -> type[Any]:
    """
    Let a middleware that only computes run on the event loop.

    Django gives each of its hooks to a thread, forth and back, which costs more than the hook. Should one
    use the database after all, Django refuses that on a loop, and says so.
    """

    class OnTheLoop(middleware):  # type: ignore[misc]
        def __init__(self, get_response: Handler) -> None:
            super().__init__(get_response)
            hook = getattr(self, "process_view", None)
            if self.async_mode and hook:
                self.process_view: Any = _async(hook)

        async def __acall__(self, request: HttpRequest) -> Any:
            response = self.process_request(request) if hasattr(self, "process_request") else None
            response = response or await self.get_response(request)
            return self.process_response(request, response) if hasattr(self, "process_response") else response

    return OnTheLoop


def _async(hook: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    async def run(*args: Any, **kwargs: Any) -> Any:
        return hook(*args, **kwargs)

    return run


class _Csrf(CsrfViewMiddleware):
    """
    Asks no token of a request whose Origin says that it comes from a page of ours.

    Browsers name the origin with every post, and no page can lie about it. A token says no more, but it is learnt with
    the page and changes with each sign-in, also one in another tab. Whoever names no origin is asked for it still.
    """

    def process_view(self, request: HttpRequest, *view: Any) -> Any:
        headers = [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]
        if origin_is_allowed(headers, request.scheme or "", settings.ALLOWED_HOSTS, other_origins()):
            # Django's views that look by themselves then leave it at that.
            return self._accept(request)  # type: ignore[attr-defined]
        return super().process_view(request, *view)


Security = on_the_loop(SecurityMiddleware)
Csp = on_the_loop(CSPMiddleware)
Common = on_the_loop(CommonMiddleware)
Csrf = on_the_loop(_Csrf)
Authentication = on_the_loop(AuthenticationMiddleware)
Messages = on_the_loop(MessageMiddleware)
XFrameOptions = on_the_loop(XFrameOptionsMiddleware)


class Sessions(SessionMiddleware):
    """Renews sessions that are used. Needs a thread, for the database, only where one is to be written."""

    async def __acall__(self, request: HttpRequest) -> Any:
        self.process_request(request)
        response = await self.get_response(request)  # type: ignore[misc]
        if request.session.modified or _session_of(request).is_due:
            return await sync_to_async(self.process_response)(request, response)
        return self.process_response(request, response)

    def process_response(self, request: HttpRequest, response: Any) -> Any:
        session = _session_of(request)
        # A failed request says nothing of use. One that changed the session saves it, which renews it too.
        if response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR and session.is_due and session.renew():
            _give_cookie(response, session)
        return super().process_response(request, response)


def _session_of(request: HttpRequest) -> SessionStore:
    return cast("SessionStore", request.session)


def _give_cookie(response: HttpResponse, session: SessionStore) -> None:
    response.set_cookie(
        settings.SESSION_COOKIE_NAME,
        session.session_key or "",
        max_age=session.get_expiry_age(),
        domain=settings.SESSION_COOKIE_DOMAIN,
        path=settings.SESSION_COOKIE_PATH,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=settings.SESSION_COOKIE_HTTPONLY,
        samesite=settings.SESSION_COOKIE_SAMESITE,  # type: ignore[arg-type]
    )


@sync_and_async_middleware
def let_bodies_go(get_response: Handler) -> Handler:
    """
    Forget a request's body when it has been answered.

    A request holds itself, through what Django's own middleware hangs on it, so it stays until garbage is searched
    for. Its body may be a megabyte, and a stranger may send many.
    """

    async def answer_async(request: HttpRequest) -> Any:
        try:
            return await get_response(request)
        finally:
            _forget_body(request)

    def answer(request: HttpRequest) -> Any:
        try:
            return get_response(request)
        finally:
            _forget_body(request)

    return answer_async if iscoroutinefunction(get_response) else answer


def _forget_body(request: Any) -> None:
    request._body = b""  # noqa: SLF001 - Django has no other name for it.
    request._stream = BytesIO()  # noqa: SLF001


@sync_and_async_middleware
def static_files(get_response: Handler) -> Handler:
    """
    Serve what WhiteNoise finds, as its own middleware does; that one is sync only.

    Each file is read whole: they are small, and ASGI has no sync streams.
    """
    files = WhiteNoiseMiddleware(get_response)

    def found(request: HttpRequest) -> Any:
        path = request.path_info
        return files.find_file(path) if files.autorefresh else files.files.get(path)

    async def serve_async(request: HttpRequest) -> Any:
        file = found(request)
        if file is None:
            answer: Awaitable[Any] = get_response(request)
            return await answer
        return await asyncio.to_thread(_response, file, request)

    def serve(request: HttpRequest) -> Any:
        file = found(request)
        return get_response(request) if file is None else _response(file, request)

    return serve_async if iscoroutinefunction(get_response) else serve


def _response(file: Any, request: HttpRequest) -> HttpResponse:
    answer = file.get_response(request.method, request.META)
    try:
        content = answer.file.read() if answer.file else b""
    finally:
        if answer.file:
            answer.file.close()
    response = HttpResponse(content, status=int(answer.status), headers=dict(answer.headers))
    if answer.file:
        # WhiteNoise measured the file when the process started; it may have been edited since.
        response["Content-Length"] = str(len(content))
    return response
