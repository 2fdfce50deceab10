"""Where readiness is tried."""

from __future__ import annotations

from django.db import models


class Readiness(models.Model):
    """One row, which `/readyz` writes: whether the database takes a write is known only by one."""

    at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"written at {self.at}"
