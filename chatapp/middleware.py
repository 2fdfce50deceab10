"""Middleware without a sync step in the way of streams and requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from io import BytesIO
from typing import Any, TypeAlias

from asgiref.sync import sync_to_async
from csp.middleware import CSPMiddleware
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


Security = on_the_loop(SecurityMiddleware)
Csp = on_the_loop(CSPMiddleware)
Common = on_the_loop(CommonMiddleware)
Csrf = on_the_loop(CsrfViewMiddleware)
Authentication = on_the_loop(AuthenticationMiddleware)
Messages = on_the_loop(MessageMiddleware)
XFrameOptions = on_the_loop(XFrameOptionsMiddleware)


class Sessions(SessionMiddleware):
    """Needs a thread, for the database, only where a session is to be saved."""

    async def __acall__(self, request: HttpRequest) -> Any:
        self.process_request(request)
        response = await self.get_response(request)  # type: ignore[misc]
        if request.session.modified:
            return await sync_to_async(self.process_response)(request, response)
        return self.process_response(request, response)


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
