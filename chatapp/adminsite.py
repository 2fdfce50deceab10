"""The operator's admin, with a content security policy that its scripts can work under."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from csp.decorators import csp_replace
from django.conf import settings
from django.contrib.admin import AdminSite


class OperatorSite(AdminSite):
    site_header = site_title = "Sidestream"
    site_url = "/"

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Any:
        return super().admin_view(_under_admin_policy(view), cacheable)

    def login(self, request: Any, extra_context: Any = None) -> Any:
        return _under_admin_policy(super().login)(request, extra_context)


def _under_admin_policy(view: Callable[..., Any]) -> Callable[..., Any]:
    return csp_replace(settings.ADMIN_CONTENT_SECURITY_POLICY)(view)
