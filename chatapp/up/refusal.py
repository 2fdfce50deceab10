"""Why `up` ends by itself.

UpError
├── Refused        something on this machine is in the way; nothing was started
└── StartFailed    a service could not be brought up
"""

from __future__ import annotations


class UpError(Exception):
    """Base of the tree; never raised itself. Its text is one or two sentences for the person at the keyboard."""

    exit_code = 1


class Refused(UpError):
    """Something on this machine is in the way, and the text says what to do about it."""

    exit_code = 2


class StartFailed(UpError):
    """A service ended again and again before it was ready once."""
