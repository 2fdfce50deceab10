"""What one owner may take: answers at a time, and prompts and conversations a minute.

Answers are counted in the database, in the transaction that adds more, so the count is exact over all web
processes. Rates are counted in Redis. Who belongs to nobody else is an owner of their own: a guest who
throws the cookie away begins anew, so against strangers a public server also needs its proxy's limits.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from django.conf import settings
from django.db import connection
from redis.asyncio import Redis
from redis.exceptions import RedisError

from chatapp.errors import Problem
from chatapp.models import NOT_ENDED, Generation
from chatapp.owners import Owner
from chatapp.seldom import Seldom, why

_seldom = Seldom(logging.getLogger(__name__))

_SPEND = (Path(__file__).parent / "spend.lua").read_text(encoding="utf-8")
WINDOW_MS = 60_000
# Nobody can say when an answer will end; asking again after this long costs little.
RUNNING_RETRY_S = 5
TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Rate:
    """So many things a minute, for each owner; `setting` names how many, 0 for any number."""

    name: str
    setting: str
    code: str
    things: str

    async def spend(self, redis: Redis, owner: Owner) -> None:
        """
        Count one more.

        Without Redis nothing is counted: nothing is answered either until it is back.

        Raises:
            Problem: there were too many within the last minute.
        """
        most = getattr(settings, self.setting)
        if not most:
            return
        key = f"sidestream:spent:{self.name}:{owner.key}"
        try:
            async with asyncio.timeout(TIMEOUT_S):
                wait_ms = await redis.register_script(_SPEND)([key], [most, WINDOW_MS, uuid.uuid4().hex])
        except (RedisError, OSError, TimeoutError) as exc:
            _seldom.warning("%s were not counted: %s", self.things, why(exc))
            return
        if wait_ms:
            wait_s = -(-cast("int", wait_ms) // 1000)
            detail = f"At most {most} {self.things} a minute are allowed. Try again in {wait_s} s."
            raise Problem(self.code, detail, retry_after=wait_s)


PROMPTS = Rate("prompts", "PROMPTS_PER_MINUTE", "too_many_prompts", "prompts")
CONVERSATIONS = Rate("conversations", "CONVERSATIONS_PER_MINUTE", "too_many_conversations", "new conversations")


def live_of(owner: Owner) -> list[uuid.UUID]:
    """
    Give the conversation of each answer that is being written for an owner.

    Call it in the transaction that adds more: where their number is limited, it holds off the owner's other
    requests until that ends.
    """
    if settings.MAX_RUNNING:
        _one_at_a_time(owner)
    live = Generation.objects.order_by().filter(NOT_ENDED, owner.owns("conversation__"))
    return list(live.values_list("conversation_id", flat=True))


def check_running(running: int, more: int) -> None:
    """
    See that an owner may have so many more answers at a time.

    Raises:
        Problem: `too_many_running`.
    """
    most = settings.MAX_RUNNING
    if most and running + more > most:
        detail = f"At most {most} answers at a time are allowed, and {running} are being written. Stop some, or wait."
        raise Problem("too_many_running", detail, retry_after=RUNNING_RETRY_S)


def _one_at_a_time(owner: Owner) -> None:
    """Wait for the owner's other requests. SQLite lets only one write anyway."""
    if connection.vendor != "postgresql":
        return
    number = int.from_bytes(hashlib.sha256(owner.key.encode()).digest()[:8], signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", cast("Any", [number]))
