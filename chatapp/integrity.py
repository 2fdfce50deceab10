"""Whether an ended generation's row and its archived events still agree. Pure but for what it is given."""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import Any

from chatapp.models import EventArchive, Generation
from streaming.events import TERMINAL_TYPES, TextDelta


def faults_of(row: Generation, archive: EventArchive | None) -> list[str]:
    """Say in words what does not agree; nothing when all does."""
    faults = _faults_of_text(row)
    if archive is None:
        return [*faults, "its events are not archived"]
    try:
        lines = archive.events()
    except (zlib.error, UnicodeDecodeError):
        return [*faults, "its archived events cannot be read"]
    if hashlib.sha256(lines.encode()).hexdigest() != archive.sha256:
        faults.append("the digest of its archived events differs")
    events = [json.loads(line) for line in lines.split("\n") if line]
    if len(events) != archive.count:
        faults.append(f"{archive.count} events were archived, and {len(events)} are there")
    return [*faults, *_faults_of_events(row, events)]


def _faults_of_text(row: Generation) -> list[str]:
    faults = []
    if len(row.text) != row.text_length:
        faults.append("the length of its text differs")
    if hashlib.sha256(row.text.encode()).hexdigest() != row.text_sha256:
        faults.append("the digest of its text differs")
    return faults


def _faults_of_events(row: Generation, events: list[dict[str, Any]]) -> list[str]:
    faults = []
    if [event["seq"] for event in events] != list(range(1, len(events) + 1)):
        faults.append("its events are not numbered 1, 2, 3 …")
    if [event["type"] in TERMINAL_TYPES for event in events] != [False] * (len(events) - 1) + [True]:
        faults.append("its events do not end with the one terminal event")
    elif events[-1].get("text_sha256", row.text_sha256) != row.text_sha256:
        faults.append("its terminal event tells of another text")
    if "".join(event["text"] for event in events if event["type"] == TextDelta.type) != row.text:
        faults.append("its events do not give its text")
    return faults
