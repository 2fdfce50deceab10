"""A Redis that ended before it was ready: is it because of its files?"""

from __future__ import annotations

import asyncio
import io
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from chatapp.up.child import Child
from chatapp.up.console import Console
from chatapp.up.probes import redis_answers
from chatapp.up.redis_files import holds_something, look_at, set_aside
from chatapp.up.redis_formats import Files, Layout
from chatapp.up.redis_server import PrivateRedis
from chatapp.up.service import Service

_TRIAL = "trial"
_LOOK_S = 0.05


async def mend(redis: PrivateRedis, env: Mapping[str, str]) -> str:
    """
    Set the files aside if they are the cause, and give the sentence that says so; else "".

    They are if the same server, with the same settings, starts in an empty folder: then neither it nor the disk
    is at fault. That does not hang on the words of any version.

    Raises:
        Refused: the files are the cause and cannot be set aside.
    """
    if not holds_something(redis.folder) or not await _starts_empty(redis, env):
        return ""
    files = look_at(redis.folder) or Files(Layout.SINGLE)
    return set_aside(redis.folder, files, f"{redis.server} does not start with them; its lines above say why")


async def _starts_empty(redis: PrivateRedis, env: Mapping[str, str]) -> bool:
    empty = Path(tempfile.mkdtemp(prefix=".redis-trial-", dir=redis.folder.parent))
    trial = replace(redis, folder=empty)
    service = Service(_TRIAL, trial.command(), "", None, env=env)
    try:
        child = await Child.start(service, Console(io.StringIO(), [_TRIAL]))
        return await _answers_before_its_end(trial, child)
    finally:
        shutil.rmtree(empty, ignore_errors=True)


async def _answers_before_its_end(redis: PrivateRedis, child: Child) -> bool:
    ending = asyncio.create_task(child.wait())
    try:
        while not (answers := await redis_answers(redis.url)) and not ending.done():
            await asyncio.wait([ending], timeout=_LOOK_S)
        return answers
    finally:
        await child.end()
        await ending
