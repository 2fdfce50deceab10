"""The ASGI application: pages, API and SSE by Django, the WebSocket beside it."""

from __future__ import annotations

import os

from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")

# Sets Django up, which must come before anything that imports models.
_pages = get_asgi_application()

from chatapp.consumers import application as _sockets  # noqa: E402

application = ProtocolTypeRouter({"http": _pages, "websocket": _sockets})
