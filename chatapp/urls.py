"""Every route but the WebSocket's, which is in asgi.py."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path, re_path

from chatapp.views import api, health, metrics, pages, problems, streams
from chatapp.views.problems import route

_CONVERSATION = "api/conversations/<uuid:conversation>"
_GENERATION = "api/generations/<uuid:gen>"

urlpatterns = [
    path("", pages.index, name="index"),
    path("c/<uuid:conversation>", pages.conversation, name="conversation"),
    path("api/models", route(GET=api.list_models), name="models"),
    path("api/session", route(GET=api.renew_session), name="session"),
    path("api/conversations", route(POST=api.create_conversation), name="conversations"),
    path(_CONVERSATION, route(PATCH=api.rename_conversation, DELETE=api.delete_conversation), name="api-conversation"),
    path(f"{_CONVERSATION}/sync", route(GET=api.sync), name="sync"),
    path(f"{_CONVERSATION}/export", route(GET=api.export), name="export"),
    path(f"{_CONVERSATION}/events", route(GET=streams.follow), name="events"),
    path(f"{_CONVERSATION}/turns", route(POST=api.add_turn), name="turns"),
    path(f"{_CONVERSATION}/cancel", route(POST=api.cancel_all), name="cancel-all"),
    path(_GENERATION, route(GET=api.show_generation), name="generation"),
    path(f"{_GENERATION}/cancel", route(POST=api.cancel), name="cancel"),
    path(f"{_GENERATION}/retry", route(POST=api.retry), name="retry"),
    path(f"{_GENERATION}/continue", route(POST=api.go_on), name="continue"),
    re_path(r"^api/", problems.no_such_route),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics.metrics),
    path("login", LoginView.as_view(), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
]

handler400 = problems.bad_request
handler404 = problems.page_not_found
handler500 = problems.server_error
