"""The log of every process: one record is one line, whatever the words of others in it hold."""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any, Final

from chatapp.unseen import visible

logger = logging.getLogger(__name__)

LONGEST_BYTES: Final = 8 * 1024
# The head says what it is about; a traceback's end says what went wrong.
_HEAD_BYTES, _TAIL_BYTES = 3 * 1024, 5 * 1024 - 64


class OneLine(logging.Formatter):
    """A traceback's lines stand in the record's own line, too: nothing else can be told from a forged record."""

    def format(self, record: logging.LogRecord) -> str:
        return one_line(super().format(record))


def one_line(text: str) -> str:
    """Make a line of the text that shows what cannot be seen; of a longer one, its head and its end."""
    return _shortened(visible(_shortened(text)))


def tell_uncaught() -> None:
    """Send what no one caught, which the interpreter would print line by line, to the log."""
    sys.excepthook = lambda *fault: logger.critical("the process ends by a fault", exc_info=fault)
    threading.excepthook = lambda fault: _tell("a thread ended by a fault", fault)
    sys.unraisablehook = lambda fault: _tell("a fault that nothing can be told of", fault)


def _tell(what: str, fault: Any) -> None:
    logger.error("%s", what, exc_info=(fault.exc_type, fault.exc_value, fault.exc_traceback))


def _shortened(text: str) -> str:
    if len(text) * 4 <= LONGEST_BYTES:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= LONGEST_BYTES:
        return text
    head, tail = data[:_HEAD_BYTES], data[-_TAIL_BYTES:]
    left_out = len(data) - len(head) - len(tail)
    return f"{head.decode(errors='ignore')} … ({left_out} bytes left out) … {tail.decode(errors='ignore')}"
