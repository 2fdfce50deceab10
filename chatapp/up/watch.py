"""Ready stays true while it runs: what has become unusable is told once, and so is its return."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from chatapp.up.console import Console
from chatapp.up.grounds import LOCK_NAME, make_folder
from chatapp.up.probes import http_get
from chatapp.up.refusal import Refused

# Each look is a GET of /readyz and a file that is made and removed in the state's folder.
EVERY_S = 5.0
# What a second look no longer finds was a process that is being started again, which is told elsewhere.
AGAIN_S = 2.5
FOLDER, WEB = "folder", "web"

# Part → sentence; empty if all can be used.
Look = Callable[[], Awaitable[Mapping[str, str]]]


class Watch:
    """Looks until cancelled. `announce` is called once, at the first look that finds nothing missing."""

    def __init__(
        self,
        look: Look,
        console: Console,
        announce: Callable[[], None],
        every_s: float = EVERY_S,
        again_s: float = AGAIN_S,
    ) -> None:
        self._look = look
        self._console = console
        self._announce = announce
        self._every_s = every_s
        self._again_s = again_s
        self._announced = False
        self._told: Mapping[str, str] = {}

    async def run(self) -> None:
        before: Mapping[str, str] = {}
        while True:
            faults = await self._look()
            if not faults:
                self._tell_ready()
            elif faults.keys() == before.keys() != self._told.keys():
                self._console.say(f"not ready: {' '.join(faults.values())}")
                self._told = faults
            before = faults
            await asyncio.sleep(self._again_s if faults else self._every_s)

    def _tell_ready(self) -> None:
        if not self._announced:
            self._announced = True
            self._announce()
        elif self._told:
            self._console.say("ready again")
        self._told = {}


def look_at(folder: Path, address: str, port: int, host: str) -> Look:
    """Make the look at a running Sidestream: at its folder, then at what its web server says of all else."""

    async def look() -> Mapping[str, str]:
        return _folder_fault(folder) or await _served_faults(address, port, host)

    return look


def _folder_fault(folder: Path) -> dict[str, str]:
    """Processes that have a removed folder's files open go on writing to them, and lose all."""
    if not os.path.exists(folder / LOCK_NAME):  # noqa: PTH110 - it answers False where Path.exists may raise.
        return {FOLDER: f"{folder} was removed while Sidestream ran. Stop it; what was in there is lost."}
    try:
        make_folder(folder)
    except Refused as exc:
        return {FOLDER: str(exc)}
    return {}


async def _served_faults(address: str, port: int, host: str) -> Mapping[str, str]:
    answer = await http_get(address, port, "/readyz", host)
    if answer is None:
        return {WEB: "The web server does not answer."}
    status, body = answer
    if status == 200:
        return {}
    try:
        return {str(part): str(why) for part, why in json.loads(body)["why"].items()}
    except (ValueError, TypeError, LookupError, AttributeError):
        return {WEB: f"The web server answers /readyz with {status}."}
