"""
What is done to a site. Each fault strikes, lasts for a while, and is taken back before it returns.

A fault takes its victims and its length from the random source it is given, so that a seed repeats it. It
returns the generations that it caught: those that were within its reach, and of the kind that it is meant for,
when it landed. For most that means in mid-stream, by the upstream's account.
"""

from __future__ import annotations

from random import Random

from tests.torture.faults.caught import Fault
from tests.torture.faults.data import (
    chop_log,
    evict_key,
    flush_scripts,
    kill_clients,
    kill_subscriptions,
    lock_database,
    lose_messages,
    repeat_messages,
    wipe_generation,
    wipe_queued,
)
from tests.torture.faults.processes import (
    drain_web,
    drain_worker,
    freeze_redis,
    freeze_web,
    freeze_worker,
    kill_both_workers,
    kill_redis,
    kill_web,
    kill_worker,
    make_zombie,
)
from tests.torture.faults.ways import (
    close_cleanly,
    cut_pages,
    cut_upstream,
    cut_web_from_redis,
    cut_worker_from_redis,
    delay_pages,
    delay_upstream,
    delay_worker_from_redis,
    refuse_upstream,
    silence_pages,
    silence_upstream,
    silence_web_from_redis,
    silence_worker_from_redis,
)

# How often each is drawn. The long ones are rare, since nothing else of a schedule outlasts them.
WEIGHTS: dict[Fault, int] = {
    kill_worker: 6, kill_both_workers: 2, kill_web: 4, kill_redis: 5, chop_log: 2,
    freeze_worker: 4, make_zombie: 3, freeze_web: 3, freeze_redis: 3, drain_worker: 4, drain_web: 2,
    cut_upstream: 4, silence_upstream: 3, delay_upstream: 2, refuse_upstream: 2,
    cut_worker_from_redis: 4, silence_worker_from_redis: 3, delay_worker_from_redis: 3,
    cut_web_from_redis: 3, silence_web_from_redis: 3,
    cut_pages: 3, silence_pages: 3, delay_pages: 2, close_cleanly: 4,
    kill_subscriptions: 3, kill_clients: 3, flush_scripts: 3, wipe_generation: 3, wipe_queued: 4, evict_key: 4,
    lock_database: 3, repeat_messages: 4, lose_messages: 3,
}  # fmt: skip
BY_NAME = {fault.__name__: fault for fault in WEIGHTS}


def draw(rng: Random) -> str:
    """Choose a fault's name by weight."""
    (fault,) = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
    return fault.__name__


__all__ = [
    "BY_NAME",
    "WEIGHTS",
    "chop_log",
    "close_cleanly",
    "cut_pages",
    "cut_upstream",
    "cut_web_from_redis",
    "cut_worker_from_redis",
    "delay_pages",
    "delay_upstream",
    "delay_worker_from_redis",
    "drain_web",
    "drain_worker",
    "draw",
    "evict_key",
    "flush_scripts",
    "freeze_redis",
    "freeze_web",
    "freeze_worker",
    "kill_both_workers",
    "kill_clients",
    "kill_redis",
    "kill_subscriptions",
    "kill_web",
    "kill_worker",
    "lock_database",
    "lose_messages",
    "make_zombie",
    "refuse_upstream",
    "repeat_messages",
    "silence_pages",
    "silence_upstream",
    "silence_web_from_redis",
    "silence_worker_from_redis",
    "wipe_generation",
    "wipe_queued",
]
