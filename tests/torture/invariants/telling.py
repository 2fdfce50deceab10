"""How a broken promise is told."""

from __future__ import annotations


def difference(ours: str, theirs: str) -> str:
    """Say where two texts part."""
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    parting = f"{ours[at : at + 30]!r} and {theirs[at : at + 30]!r}"
    return f"{len(ours)} and {len(theirs)} characters, parting at {at}: {parting}"
