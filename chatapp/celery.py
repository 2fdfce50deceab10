"""The Celery application. A message only hints that a generation waits; the log's claim decides who drives it."""

from __future__ import annotations

import os
import signal
from typing import Any

from celery import Celery, bootsteps
from celery.signals import setup_logging
from django.conf import settings
from django.utils.log import configure_logging

from chatapp.inherited import is_ignored

os.environ["DJANGO_SETTINGS_MODULE"] = "chatapp.settings"

# Celery asks the environment for these before our settings, and another project may have left them there.
for _name in ("BROKER_URL", "BROKER_READ_URL", "BROKER_WRITE_URL", "RESULT_BACKEND", "LOADER", "CONFIG_MODULE"):
    os.environ.pop(f"CELERY_{_name}", None)

app = Celery("sidestream")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["chatapp"])

# Looked at before Celery handles all of them.
_IGNORED = [number for number in (signal.SIGHUP, signal.SIGINT) if is_ignored(number)]


@setup_logging.connect
def log_as_everywhere(**_: Any) -> None:
    """Keep Celery from a format of its own; as long as anybody is connected, it leaves the log alone."""
    configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)


class KeepIgnored(bootsteps.StartStopStep):
    """Let `nohup` and a shell's `&` mean for a worker what they mean for every program."""

    def start(self, parent: Any) -> None:  # noqa: ARG002
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)


app.steps["worker"].add(KeepIgnored)
