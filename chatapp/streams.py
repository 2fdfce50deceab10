"""How many streams each owner has open in this process."""

from __future__ import annotations

from weakref import WeakSet

from chatapp.errors import Problem
from chatapp.owners import Owner

# A person with every pane of the screen full of tabs stays below; a loop that opens streams does not.
MAX_STREAMS = 32


class Stream:
    """A place among an owner's open streams; given back by `close`, or when nobody holds it any more."""

    __slots__ = ("__weakref__", "_key")

    def __init__(self, key: str) -> None:
        self._key = key

    def close(self) -> None:
        others = _open.get(self._key)
        if others is not None:
            others.discard(self)
            if not others:
                del _open[self._key]


_open: dict[str, WeakSet[Stream]] = {}


def open_stream(owner: Owner) -> Stream:
    """
    Take a place.

    Raises:
        Problem: `too_many_streams`.
    """
    others = _open.setdefault(owner.key, WeakSet())
    if len(others) >= MAX_STREAMS:
        raise Problem("too_many_streams", f"At most {MAX_STREAMS} live connections are allowed. Close some tabs.")
    stream = Stream(owner.key)
    others.add(stream)
    return stream
