"""Who a conversation belongs to, and who is asking."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.contrib.auth import get_user
from django.contrib.sessions.backends.base import SessionBase
from django.db.models import Q
from django.http import HttpRequest

from chatapp.sessions import SessionReader

_GUEST = "guest"  # The session's item that holds the guest's id.


@dataclass(frozen=True, slots=True)
class Owner:
    """A signed-in user, or a guest; with neither, nobody, who owns nothing."""

    user: int | None = None
    guest: str = ""

    @property
    def key(self) -> str:
        return f"user:{self.user}" if self.user is not None else f"guest:{self.guest}"

    @property
    def role(self) -> str:
        """Say what they are in the words of a cancel request, which names nobody."""
        return "user" if self.user is not None else "guest"

    def owns(self, prefix: str = "") -> Q:
        """Narrow a query to what is theirs. `prefix` leads from the queried model to the conversation."""
        if self.user is not None:
            return Q(**{f"{prefix}user_id": self.user})
        if self.guest:
            return Q(**{f"{prefix}guest": self.guest})
        return Q(pk__in=())


NOBODY = Owner()


def owner_of_session(session: SessionReader) -> Owner:
    """Say whose session it is. Reads the database."""
    request = HttpRequest()
    request.session = session
    return owner_of(request)


def owner_of(request: HttpRequest) -> Owner:
    """Say who asks. Reads the database."""
    user = get_user(request)
    if user.is_authenticated and user.is_active:
        return Owner(user=user.pk)
    return Owner(guest=request.session.get(_GUEST, ""))


def settle_guest(session: SessionBase) -> Owner:
    """Make the session's owner a guest with an id of their own. Only now does a visitor get a cookie."""
    session[_GUEST] = secrets.token_hex(16)
    return Owner(guest=session[_GUEST])


def take_guest(session: SessionBase) -> Owner:
    """Give the guest that this session was, and forget them."""
    return Owner(guest=session.pop(_GUEST, ""))
