"""manage.py verify: look for answers that do not agree with their archived events."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from chatapp.integrity import faults_of
from chatapp.models import Generation
from streaming.lifecycle import TERMINAL


class Command(BaseCommand):
    help = (
        "Fold the archived events of every ended answer and compare them with its row: state, number of events, "
        "text, reasoning, tool calls, usage, finish and all else that the row says of the answer, but its rendered "
        "blocks. Lengths and digests are checked too. Prints one line for each disagreement. "
        "Changes nothing. Exit code 1 if there is any."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        rows = Generation.objects.filter(state__in=sorted(TERMINAL)).select_related("archive").defer("blocks")
        looked_at = faulty = 0
        # In small portions: an archive may be large, and there may be many.
        for row in rows.order_by("pk").iterator(chunk_size=50):
            looked_at += 1
            faults = faults_of(row, getattr(row, "archive", None))
            faulty += bool(faults)
            for fault in faults:
                self.stdout.write(f"generation {row.pk}: {fault}")
        self.stdout.write(f"{looked_at} ended answers looked at, {faulty} with faults")
        if faulty:
            raise SystemExit(1)
