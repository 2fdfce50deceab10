"""Snapshots from their JSON form, as a page reads them from the sync document and from snapshot frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streaming.lifecycle import State
from streaming.snapshot import Block, Snapshot, Tool


def snapshot_from_dict(data: Mapping[str, Any]) -> Snapshot:
    # The sync document says more of a generation than its snapshot.
    rest = {name: value for name, value in data.items() if name in Snapshot.__slots__}
    return Snapshot(
        state=State(rest.pop("state")),
        tools=tuple(Tool(**tool) for tool in rest.pop("tools")),
        steps=tuple(rest.pop("steps")),
        blocks=tuple(Block(**block) for block in rest.pop("blocks")),
        **rest,
    )
