"""GET /metrics, for those that the operator lets in; for all others there is nothing here."""

from __future__ import annotations

import hmac
from ipaddress import ip_address

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from chatapp.metrics import exposition
from chatapp.wiring import web


@require_safe
async def metrics(request: HttpRequest) -> HttpResponse:
    if not (_has_token(request) or _comes_from_near(request)):
        raise Http404
    body = await exposition(web().redis, web().streams.count)
    return HttpResponse(body, content_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"})


def _has_token(request: HttpRequest) -> bool:
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    wanted = settings.METRICS_TOKEN
    return bool(wanted) and hmac.compare_digest(given.encode(), wanted.encode())


def _comes_from_near(request: HttpRequest) -> bool:
    """A proxy on this machine is near, but those it speaks for are not."""
    if request.headers.keys() & {"X-Forwarded-For", "Forwarded", "X-Real-Ip"}:
        return False
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    return any(address in network for network in settings.METRICS_FROM)
