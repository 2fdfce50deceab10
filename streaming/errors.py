"""Every error the core raises.

StreamingError
├── ProtocolError            bytes or JSON that are not protocol version 1
├── SequenceGap              an event beyond the next seq: ask for a snapshot
├── IllegalTransition        the lifecycle does not allow this event here
├── LogError                 the log refused
│   ├── Fenced               a newer driver holds the generation: write nothing more
│   ├── LogLost              the log no longer holds what was written: write again
│   └── LogUnavailable       the log cannot be reached just now
└── UpstreamError            the model service failed; the message is safe to show
"""

from __future__ import annotations


class StreamingError(Exception):
    """Base of the tree; never raised itself."""


class ProtocolError(StreamingError):
    """Something is not protocol version 1."""


class SequenceGap(StreamingError):
    """A reader was given an event beyond the next one."""

    def __init__(self, expected: int, got: int) -> None:
        super().__init__(f"expected seq {expected}, got {got}")
        self.expected = expected
        self.got = got


class IllegalTransition(StreamingError):
    """The lifecycle table has no row for this event in this state."""


class LogError(StreamingError):
    """The log refused a write or a read."""


class Fenced(LogError):
    """A newer attempt holds the generation, or it is already terminal. Final for this driver."""


class LogLost(LogError):
    """
    The log holds less than was written to it.

    `stored_seq` is the last seq it still has; -1 when it knows nothing of the generation.
    """

    def __init__(self, stored_seq: int) -> None:
        super().__init__(f"the log holds only events up to seq {stored_seq}")
        self.stored_seq = stored_seq


class LogUnavailable(LogError):
    """The log cannot be reached. Passing; try again."""


class UpstreamError(StreamingError):
    """
    The upstream failed, and this says how in words that are safe to show.

    `code` is stable and for programs. `retryable`: the same request may succeed later.
    `detail` may hold anything of the upstream's, so it goes to the log only. `said` is the upstream's own words,
    cleaned, for a person who asks for them.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool = False,
        retry_after_s: float | None = None,
        detail: str = "",
        said: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.detail = detail
        self.said = said
