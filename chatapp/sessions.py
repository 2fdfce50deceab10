"""
Sessions that last as long as they are used.

Django's own end a fixed time after they were made or changed, which for a guest is the end of all they have. These
are renewed by use, though not with each request, since every renewal is a write and a cookie.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.utils.timezone import now

# So a session is written once a day at most, and lasts its full age but a day after it was used last.
RENEW_EVERY = timedelta(days=1)


class SessionStore(DatabaseStore):
    """Knows its row as it was loaded, and when that is to be renewed."""

    # Django makes it from the class's name: this is that of its own store, and holds for subclasses too.
    key_salt = "django.contrib.sessions.SessionStore"

    _row: Any = None

    def _get_session_from_db(self) -> Any:
        self._row = super()._get_session_from_db()  # type: ignore[misc]
        return self._row

    @property
    def is_due(self) -> bool:
        """
        Whether to renew it: a day of its age has gone, or half of an age that is shorter than two.

        One that no key of today verifies reads as empty, and stays as it is: the operator may put the key back.
        """
        if self._row is None or self.modified or not self.keys():
            return False
        age = timedelta(seconds=self.get_expiry_age())
        return bool(self._row.expire_date - now() < age - min(RENEW_EVERY, age / 2))

    def renew(self) -> bool:
        """
        Let its age begin anew, and sign it with today's key. False if another request changed or ended it meanwhile.

        One conditional UPDATE: saving the session would write back what it was when it was loaded.
        """
        if (row := self._row) is None:
            return False
        same = self.model.objects.filter(session_key=self.session_key, session_data=row.session_data)
        self._row = None
        return bool(same.update(session_data=self.encode(dict(self.items())), expire_date=self.get_expiry_date()))


class SessionReader(SessionStore):
    """
    A session for those who cannot give the browser another cookie, such as a WebSocket.

    When the secret key has changed, Django moves a user's session to another key as soon as it is read, and ends one
    that nothing verifies. Done here, that would take the session from a browser that still sends the old key.
    """

    def cycle_key(self) -> None:
        """Leave it to the next request."""

    def flush(self) -> None:
        """Forget it here only."""
        self.clear()
