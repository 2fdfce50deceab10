"""What libraries log as errors, though it happens every day: a client was wrong, or Redis was restarted."""

from __future__ import annotations

import logging

_LOST_BROKER = ("consumer: Connection to broker lost", "consumer: Cannot connect")


def rate(record: logging.LogRecord) -> bool:
    """
    Make a record as grave as what it tells. False for what has been told already.

    For the handler's filter, because a logger's own sees nothing of its children.
    """
    if record.name == "django.request" and getattr(record, "status_code", 0) == 503:
        return False  # The views say what is away, once.
    is_refusal = record.name.startswith("django.security.")
    if is_refusal or (record.name.startswith("celery.") and str(record.msg).startswith(_LOST_BROKER)):
        _calm(record)
    return True


def _calm(record: logging.LogRecord) -> None:
    record.levelno = min(record.levelno, logging.WARNING)
    record.levelname = logging.getLevelName(record.levelno)
    record.exc_info = record.exc_text = None
