"""For whoever supervises the process: does it live, and can it serve."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse

from chatapp.wiring import web


async def healthz(_request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok\n", content_type="text/plain", headers={"Cache-Control": "no-store"})


async def readyz(_request: HttpRequest) -> HttpResponse:
    """Answer 200, or 503 with what is missing (database, redis, worker) and why: `why` is part → sentence."""
    why = await web().trial.faults()
    body = {"ready": not why, "missing": list(why), "why": why}
    return JsonResponse(body, status=503 if why else 200, headers={"Cache-Control": "no-store"})
