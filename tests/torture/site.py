"""
The whole site in real processes: Redis, two workers, two web servers, nginx before them, an upstream.

    page → front → nginx → web wires → Daphne → Redis wires → Redis ← Redis wires ← worker → upstream wires → upstream

Each arrow through "front" or "wires" is a relay of this process with a fault switch.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from redis.asyncio import Redis

from chatapp.up.console import Console
from chatapp.up.grounds import free_port
from chatapp.up.probes import WorkerProbe, http_answers, redis_answers
from chatapp.up.redis_server import PrivateRedis, find_servers
from chatapp.up.service import Probe, Service
from tests.torture import scripts
from tests.torture.hurts import Hurts, Place
from tests.torture.part import Part
from tests.torture.wire import Wire

ROOT = Path(__file__).parents[2]
DRAIN_S = 2
WORKER_STREAMS = 120
_HOST = "127.0.0.1"
_LIMITS = (
    "SIDESTREAM_MAX_RUNNING", "SIDESTREAM_MAX_STREAMS",
    "SIDESTREAM_PROMPTS_PER_MINUTE", "SIDESTREAM_CONVERSATIONS_PER_MINUTE",
)  # fmt: skip
_NAMES = ("redis", "upstream", "worker0", "worker1", "web0", "web1", "nginx")
# What an operator would write, and nothing about buffering: the product has to ask for that itself. (One thing
# is the suite's: by default nginx rests a web server that failed once for 10 s, and would hide what comes back.)
_NGINX = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log;
events {{ worker_connections 2048; }}
http {{
    access_log off;
    client_body_temp_path {folder}/nginx-body;
    proxy_temp_path {folder}/nginx-proxy;
    fastcgi_temp_path {folder}/nginx-fastcgi;
    uwsgi_temp_path {folder}/nginx-uwsgi;
    scgi_temp_path {folder}/nginx-scgi;
    upstream web {{ {servers} }}
    server {{
        listen unix:{folder}/nginx.sock;
        proxy_set_header Host $http_host;
        location / {{ proxy_pass http://web; }}
        location /ws/ {{
            proxy_pass http://web;
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection "upgrade";
        }}
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class Way:
    """The way of a worker's calls to the upstream. `is_safe`: no fault ever touches it."""

    worker: int
    is_safe: bool


class Site:
    """Everything that runs, and the switches on its ways. Built by `running_site`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hurts = Hurts()
        self.private_redis = PrivateRedis(find_servers()[0], folder / "redis", folder / "redis.sock")
        self.redis: Part
        self.upstream: Part
        self.nginx: Part
        self.workers: list[Part] = []
        self.webs: list[Part] = []
        self.front: Wire
        self.worker_redis: list[Wire] = []  # one for each worker
        self.web_redis: list[Wire] = []
        self.worker_upstream: list[Wire] = []
        self.worker_failing: list[Wire] = []  # a second way, so that models which fail don't rest those which don't
        self.ways: dict[str, Way] = {}  # by the host and port that a call was made to
        self.web_http: list[Wire] = []  # between nginx and each web server
        self.port = 0
        self.upstream_port = free_port()
        self.client: Redis = Redis.from_url(self.private_redis.url, socket_timeout=5)

    @property
    def database(self) -> Path:
        return self.folder / "sidestream.sqlite3"

    @property
    def parts(self) -> list[Part]:
        return [self.redis, self.upstream, *self.workers, *self.webs, self.nginx]

    @property
    def wires(self) -> list[Wire]:
        ways = [*self.worker_redis, *self.web_redis, *self.worker_upstream, *self.worker_failing, *self.web_http]
        return [self.front, *ways] if hasattr(self, "front") else ways

    async def heal(self) -> None:
        """End every fault, and wait until all parts are ready again."""
        for wire in self.wires:
            wire.heal()
        for part in self.parts:
            if part.runs:
                part.thaw()
        for part in self.parts:
            await part.until_ready()

    def own_endings(self) -> list[str]:
        """Name the processes that ended although nobody hurt them, each once."""
        endings = [f"{part.name} ended by itself with {code}" for part in self.parts for code in part.own_endings]
        for part in self.parts:
            part.own_endings.clear()
        return endings


@contextlib.asynccontextmanager
async def running_site(
    workers: int = 2, webs: int = 2, environ: Mapping[str, str] | None = None
) -> AsyncIterator[Site]:
    """Start a site in a folder of its own; end it and remove the folder at the end, whatever happened."""
    # A socket's path may have 107 bytes only, so the folder stands directly in the temporary one.
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    with (folder / "log").open("w") as log:
        site = Site(folder)
        try:
            await _Builder(site, log, environ or {}).build(workers, webs)
            yield site
        finally:
            await _take_down(site)
            keep = os.environ.get("TORTURE_KEEP_LOG")
            if keep:
                shutil.copy(folder / "log", keep)
            shutil.rmtree(folder, ignore_errors=True)


class _Builder:
    def __init__(self, site: Site, log: TextIO, environ: Mapping[str, str]) -> None:
        self._site = site
        self._console = Console(log, _NAMES)
        folder = site.folder
        (folder / "scripts").mkdir()
        (folder / "redis").mkdir()
        catalogue = scripts.write_all(folder / "scripts")
        self._environ = {
            **os.environ, "PYTHONUNBUFFERED": "1", "SIDESTREAM_VAR": str(folder), "MODELS_FILE": str(catalogue),
            "SIDESTREAM_WORKER_STREAMS": str(WORKER_STREAMS), "SIDESTREAM_DRAIN_GRACE_S": str(DRAIN_S),
            # One person does here what a thousand would: what each may take is another suite's matter.
            **dict.fromkeys(_LIMITS, "0"),
            "REDIS_URL": site.private_redis.url, "DATABASE_URL": f"sqlite:///{site.database}", **environ,
        }  # fmt: skip

    async def build(self, workers: int, webs: int) -> None:
        site = self._site
        command = site.private_redis.command()
        site.redis = self._part("redis", Place.REDIS, command, lambda _: redis_answers(site.private_redis.url))
        site.upstream = self._upstream()
        for part in (site.redis, site.upstream):
            await part.start()
        self._migrate()
        for part in (site.redis, site.upstream):
            await part.until_ready()
        for number in range(workers):
            site.workers.append(await self._worker(number))
        for number in range(webs):
            site.webs.append(await self._web(number))
        for part in (*site.workers, *site.webs):
            await part.start()
        await self._nginx()
        for part in site.parts:
            await part.until_ready()

    def _migrate(self) -> None:
        command = [sys.executable, "manage.py", "migrate", "--no-input", "--verbosity", "0"]
        subprocess.run(command, cwd=ROOT, env=self._environ, check=True)

    def _upstream(self) -> Part:
        port = self._site.upstream_port
        folder = self._site.folder / "scripts"
        command = [sys.executable, "-m", "streaming.upstream.scripted_server", "--port", str(port)]
        command += ["--scripts", str(folder)]
        return self._part("upstream", Place.UPSTREAM, command, _http_probe(port, "/health"))

    async def _worker(self, number: int) -> Part:
        site = self._site
        environ = await self._with_wired_redis(f"worker{number}", Place.WORKER_TO_REDIS, site.worker_redis)
        for variable, wires in (
            (scripts.UPSTREAM, site.worker_upstream),
            (scripts.FAILING_UPSTREAM, site.worker_failing),
        ):
            wire = Wire(site.upstream_port, site.hurts, Place.WORKER_TO_UPSTREAM, number)
            host = f"{_HOST}:{await wire.listen(0)}"
            environ[variable] = f"http://{host}/v1"
            wires.append(wire)
            site.ways[host] = Way(number, is_safe=variable == scripts.FAILING_UPSTREAM)
        command = [
            sys.executable, "-m", "celery", "--quiet", "--app", "chatapp", "worker",
            "--pool", "threads", "--concurrency", str(WORKER_STREAMS), "--queues", "generations",
            "--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO",
        ]  # fmt: skip
        probe = WorkerProbe(site.private_redis.url)
        return self._part(f"worker{number}", Place.WORKER, command, probe, environ, number, grace_s=DRAIN_S + 15)

    async def _web(self, number: int) -> Part:
        site = self._site
        environ = await self._with_wired_redis(f"web{number}", Place.WEB_TO_REDIS, site.web_redis)
        # A web server only looks whether they are set.
        environ |= dict.fromkeys((scripts.UPSTREAM, scripts.FAILING_UPSTREAM), "http://127.0.0.1:9/v1")
        port = free_port()
        wire = Wire(port, site.hurts, Place.NGINX_TO_WEB, number)
        await wire.listen(site.folder / f"web{number}-http.sock")
        site.web_http.append(wire)
        command = [
            sys.executable, "-m", "daphne", "--bind", _HOST, "--port", str(port),
            "--no-server-name", "--verbosity", "0", "chatapp.asgi:application",
        ]  # fmt: skip
        return self._part(f"web{number}", Place.WEB, command, _http_probe(port, "/healthz"), environ, number)

    async def _with_wired_redis(self, name: str, place: Place, wires: list[Wire]) -> dict[str, str]:
        wire = Wire(self._site.private_redis.socket, self._site.hurts, place, len(wires))
        path = self._site.folder / f"{name}-redis.sock"
        await wire.listen(path)
        wires.append(wire)
        return {**self._environ, "REDIS_URL": f"unix://{path}"}

    async def _nginx(self) -> None:
        site = self._site
        servers = " ".join(f"server unix:{site.folder}/web{n}-http.sock max_fails=0;" for n in range(len(site.webs)))
        path = site.folder / "nginx.conf"
        path.write_text(_NGINX.format(folder=site.folder, servers=servers))
        site.front = Wire(site.folder / "nginx.sock", site.hurts, Place.FRONT)
        site.port = await site.front.listen(0)
        command = [_find_nginx(), "-c", str(path), "-p", str(site.folder)]
        site.nginx = self._part("nginx", Place.NGINX, command, _http_probe(site.port, "/healthz"))
        await site.nginx.start()

    def _part(
        self,
        name: str,
        place: Place,
        command: Sequence[str],
        probe: Probe,
        environ: Mapping[str, str] | None = None,
        number: int = 0,
        *,
        grace_s: float = 5.0,
    ) -> Part:
        service = Service(name, command, name, probe, env=environ or self._environ, folder=ROOT, grace_s=grace_s)
        return Part(service, self._console, self._site.hurts, place, number)


async def _take_down(site: Site) -> None:
    """Kill, not end: at the end nothing is tested any more."""
    built = [getattr(site, name) for name in ("redis", "upstream", "nginx") if hasattr(site, name)]
    for part in (*site.workers, *site.webs, *built):
        if part.runs:
            part.thaw()
            await part.kill()
    for wire in site.wires:
        await wire.close()
    await site.client.aclose()


def _http_probe(port: int, path: str) -> Probe:
    async def ready(_pid: int) -> bool:
        return await http_answers(_HOST, port, path, _HOST)

    return ready


def _find_nginx() -> str:
    # Debian keeps it where only root's PATH leads.
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise FileNotFoundError("nginx was not found; install it (on Debian: apt-get install nginx-light)")
    return found
