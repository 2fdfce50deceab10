"""What both transports of a live connection share: whether it may open, and whether it may go on."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, field
from time import monotonic

from django.conf import settings

from chatapp.conversations import is_theirs, names_of
from chatapp.database import look_up
from chatapp.errors import Problem
from chatapp.owners import Owner, owner_of_session
from chatapp.sessions import SessionReader
from streaming.errors import ProtocolError
from streaming.follower import Follower, Frame
from streaming.frames import START_CURSOR, parse_cursor
from streaming.log.codec import is_to_come
from streaming.log.ports import Log


@dataclass(slots=True)
class Rights:
    """
    An open connection's right to its conversation, looked up anew every STREAM_RECHECK_S seconds.

    A session may end, a user may be locked out, a conversation may be deleted or change hands.
    """

    session_key: str | None
    owner: Owner
    conversation: uuid.UUID
    session_is_due: bool = False  # for renewal, when it was looked up last
    _checked_at: float = field(default_factory=monotonic)

    async def hold(self) -> bool:
        """Ask before each frame: for a while the last answer stands."""
        if monotonic() - self._checked_at < settings.STREAM_RECHECK_S:
            return True
        self._checked_at = monotonic()
        return await look_up(self._look_up)

    def _look_up(self) -> bool:
        session = SessionReader(self.session_key)
        if owner_of_session(session) != self.owner:
            return False
        self.session_is_due = session.is_due
        return is_theirs(self.owner, self.conversation)


def admit(who: Callable[[], Owner], conversation: uuid.UUID) -> tuple[Owner, dict[int, str]]:
    """
    Give who asks, and the UUIDs of the conversation's generations by their numbers. Reads the database.

    Raises:
        Problem: `not_found`.
    """
    owner = who()
    return owner, names_of(owner, conversation)


def frames_of(follower: Follower) -> AbstractAsyncContextManager[AsyncGenerator[Frame, None]]:
    """Give the frames as something that is closed for certain when its reader is done."""
    return aclosing(follower.frames())


def cursor_of(text: str) -> str:
    """
    Read a client's cursor; none means the beginning.

    Raises:
        Problem: `invalid_cursor`.
    """
    try:
        return parse_cursor(text or START_CURSOR)
    except ProtocolError as exc:
        raise Problem("invalid_cursor", "The cursor is not valid. Fetch sync for a new one.", field="cursor") from exc


async def refuse_foreign(log: Log, conversation: uuid.UUID, cursor: str) -> None:
    """
    Refuse a cursor that no log can have given yet: a cursor is a moment, and this one is to come.

    One from before what the log keeps is the follower's to answer, with a resync.

    Raises:
        Problem: `cursor_from_elsewhere`.
        LogUnavailable
    """
    if is_to_come(cursor, *await log.position(str(conversation))):
        detail = "The cursor is from another log. Fetch sync for a new one."
        raise Problem("cursor_from_elsewhere", detail, field="cursor")
