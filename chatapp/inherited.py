"""Signals as this process inherited them: an ignored one was ignored on purpose, a blocked one by accident."""

from __future__ import annotations

import signal
from collections.abc import Iterable


def heeded(numbers: Iterable[signal.Signals]) -> list[signal.Signals]:
    """
    Give those that are to be acted on.

    `nohup` ignores SIGHUP, and a shell without job control SIGINT for what it starts with `&`; that stays. SIGTERM
    is always heeded, because nothing else ends a process in order.
    """
    return [number for number in numbers if number is signal.SIGTERM or not is_ignored(number)]


def is_ignored(number: signal.Signals) -> bool:
    return signal.getsignal(number) == signal.SIG_IGN


def receive_all() -> None:
    """Unblock every signal, and learn of the ends of children, whatever the parent had arranged for itself."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
