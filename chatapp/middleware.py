"""Static files without a sync step in the way of streams."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any, TypeAlias

from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware
from whitenoise.middleware import WhiteNoiseMiddleware  # type: ignore[import-untyped]

Handler: TypeAlias = Callable[[HttpRequest], Any]


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
