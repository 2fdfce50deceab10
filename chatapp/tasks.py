"""The one task: drive a generation."""

from __future__ import annotations

from typing import Any

from celery.signals import worker_init, worker_shutdown, worker_shutting_down
from django.conf import settings

from chatapp.celery import app
from chatapp.dispatch import TASK
from chatapp.garbage import forget_what_is_loaded
from chatapp.logline import tell_uncaught
from chatapp.worker import host


@app.task(name=TASK)
def generate(gen: str) -> None:
    """Wait while this process's loop drives the generation; return at once when another does."""
    host().drive(gen)


@worker_init.connect
def start(**_: Any) -> None:
    tell_uncaught()
    host()
    forget_what_is_loaded()


@worker_shutting_down.connect
def drain(**_: Any) -> None:
    """Come to an end with what runs. Celery waits for the tasks, which wait for their generations."""
    host().drain(settings.DRAIN_GRACE_S)


@worker_shutdown.connect
def stop(**_: Any) -> None:
    host().stop()
