"""The ASGI application: pages, API and SSE by Django, the WebSocket beside it."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from channels.routing import ProtocolTypeRouter
from django.conf import settings
from django.core.asgi import get_asgi_application

os.environ["DJANGO_SETTINGS_MODULE"] = "chatapp.settings"

# Sets Django up, which must come before anything that imports models.
_pages = get_asgi_application()

from chatapp.consumers import application as _sockets  # noqa: E402
from chatapp.daphne import leave_politely, log_visibly  # noqa: E402
from chatapp.garbage import forget_what_is_loaded  # noqa: E402
from chatapp.leaving import leaving  # noqa: E402

_routed = ProtocolTypeRouter({"http": _pages, "websocket": _sockets})


async def application(scope: Any, receive: Any, send: Any) -> None:
    with leaving.visit():
        await _routed(scope, receive, send)


leave_politely()
log_visibly()
# All views, which Django would load with the first request.
import_module(settings.ROOT_URLCONF)
forget_what_is_loaded()
