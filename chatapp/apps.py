"""The two Django applications that this package configures."""

from __future__ import annotations

import logging

from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin.apps import AdminConfig

from streaming.upstream.network import Network, choose

logger = logging.getLogger(__name__)


class ChatappConfig(AppConfig):
    name = "chatapp"
    verbose_name = "Sidestream"

    def ready(self) -> None:
        # Importing connects the login signal.
        from chatapp import adoption  # noqa: F401, PLC0415

        logging.captureWarnings(True)
        choose(Network(settings.CA_FILE, settings.PROXIES, tuple(settings.NO_PROXY)))
        if settings.STATE_WAS_OPEN:
            logger.warning("Other users could read what is in %s. From now on only its owner can.", settings.VAR)


class OperatorConfig(AdminConfig):
    default_site = "chatapp.adminsite.OperatorSite"
