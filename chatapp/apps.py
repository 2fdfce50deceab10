"""The two Django applications that this package configures."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class ChatappConfig(AppConfig):
    name = "chatapp"
    verbose_name = "Sidestream"

    def ready(self) -> None:
        # Importing connects the login signal.
        from chatapp import adoption  # noqa: F401, PLC0415


class OperatorConfig(AdminConfig):
    default_site = "chatapp.adminsite.OperatorSite"
