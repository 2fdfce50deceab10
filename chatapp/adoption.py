"""A guest who signs in keeps their conversations."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest

from chatapp.models import Conversation
from chatapp.owners import NOBODY, take_guest


@receiver(user_logged_in)
def adopt_conversations(request: HttpRequest, user: Any, **_: Any) -> None:
    guest = take_guest(request.session)
    if guest != NOBODY:
        Conversation.objects.filter(guest.owns()).update(user=user, guest="")
