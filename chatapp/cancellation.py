"""How far a request to stop has come, with its evidence. Pure."""

from __future__ import annotations

from streaming.events import Json
from streaming.lifecycle import State
from streaming.log.ports import CancelRequest, Lease
from streaming.snapshot import Snapshot


def cancellation_of(snapshot: Snapshot, lease: Lease | None) -> dict[str, Json] | None:
    """
    Say which is true; None when nobody asked.

    `requested`: recorded, and the driver may not know yet. `known`: the driver was told, and closes the
    upstream. `answered`: the terminal event was written; `upstream` says whether the connection to the
    model is known to be closed.
    """
    if snapshot.state is State.CANCELLED and snapshot.cancel is not None:
        return {
            "state": "answered",
            "by": snapshot.cancel["reason"],
            "at": snapshot.timings.get("cancel_asked_at"),
            "upstream": snapshot.cancel["upstream"],
            "latency_ms": snapshot.cancel["latency_ms"],
        }
    if snapshot.cancel_requested is None:
        return None
    request = CancelRequest(**snapshot.cancel_requested)
    known = lease is not None and lease.knows_of(request)
    return {
        "state": "known" if known else "requested",
        "by": request.by,
        "at": request.at,
        "upstream": None,
        "latency_ms": None,
    }
