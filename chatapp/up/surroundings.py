"""The environment that `up` gives its processes: the person's, without what was left there for other programs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Celery takes these from the environment, and all that begins with CELERY_, before it looks at our settings.
_OF_CELERY: Final = frozenset({"APP", "BROKER_URL", "CONFIG_MODULE", "LOADER", "RESULT_BACKEND", "SKIP_CHECKS"})
# Daphne, Autobahn, billiard and kombu read these: they end the web server at a word that is no number, or turn SIGTERM
# into an end without a drain.
_OF_LIBRARIES: Final = frozenset({"ASGI_THREADS", "AUTOBAHN_USE_NVX", "REMAP_SIGTERM", "PICKLE_PROTOCOL"})
# They would hide our own folder, end a process by a library's warning, or turn the end of one into a prompt.
_OF_PYTHON: Final = frozenset({"PYTHONSAFEPATH", "PYTHONWARNINGS", "PYTHONINSPECT"})


def surroundings(environ: Mapping[str, str]) -> dict[str, str]:
    """Leave out the variables that mean something to a program of ours, but were not meant for it."""
    kept = {name: value for name, value in environ.items() if not _is_stray(name)}
    # File names and texts are UTF-8, whatever the locale says.
    return {**kept, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}


def _is_stray(name: str) -> bool:
    is_named = name in _OF_CELERY or name in _OF_LIBRARIES or name in _OF_PYTHON
    return is_named or name.startswith(("CELERY_", "KOMBU_"))
