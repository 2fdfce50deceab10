"""What can be odd about a place, and what must hold there all the same."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.chatapp.folders import long_folder
from tests.chatapp.starting import ROOT, Up, environment, processes_on, traces_on
from tests.places.guest import PROMPT, ask
from tests.places.service import FAR, TEXT_SAID, far_service

NOBODY = 65534
_DEAD = "http://127.0.0.1:9"
_CATALOGUE = """
[[models]]
id = "near"
label = "Near"
adapter = "scripted"
model = "echo@5000"

[[models]]
id = "far"
label = "Far"
adapter = "openai_chat"
model = "far"
address = "{far}"
"""


class Skipped(Exception):
    """This machine has not what the place needs."""


@dataclass(frozen=True)
class Place:
    """
    `folder` is where the clone goes, below a new folder; with a `length`, to a path of so many bytes instead.

    `visit` does all that is done there.
    """

    name: str
    folder: str = "plain"
    length: int | None = None
    umask: str = "022"
    user: int | None = None
    wrapper: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    visit: Callable[[Stay], None] = lambda stay: stay.start_and_ask()


@dataclass
class Stay:
    """A clone in a place, and the Python that runs it."""

    place: Place
    base: Path
    python: str
    far: str = _DEAD

    @property
    def root(self) -> Path:
        return long_folder(self.base, self.place.length) if self.place.length else self.base / self.place.folder

    @property
    def var(self) -> Path:
        return self.root / "var"

    def settle(self) -> None:
        """Clone the last commit; nothing else may lie beside it at the end."""
        self.base.mkdir(mode=0o755)
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), str(self.root)], check=True)
        if self.place.user is not None:
            self._give_to(self.place.user)

    def start_and_ask(self, model: str = "near", said: str = PROMPT, **more: str) -> None:
        with self.running(**more) as (_, address):
            assert ask(address, model) == said
            self.is_closed_to_others()

    @contextmanager
    def running(self, **more: str) -> Iterator[tuple[Up, str]]:
        """Start it, give its address, and see that nothing is left once it was stopped."""
        wrapper = ("sh", "-c", f'umask {self.place.umask}; exec "$@"', "sh", *self.place.wrapper)
        up = Up(self._environment() | more, wrapper=wrapper, root=self.root, python=self.python, user=self.place.user)
        try:
            yield up, up.is_ready()
        finally:
            code = up.stop(signal.SIGTERM)
        assert code == 0, f"it ended with exit code {code}:\n{up.text}"
        assert traces_on(self.var) == []
        assert sorted(path.name for path in self.base.iterdir()) == [self.root.relative_to(self.base).parts[0]]

    def is_closed_to_others(self) -> None:
        found = [str(path) for path in (self.var, *self.var.rglob("*")) if path.lstat().st_mode & 0o077]
        assert found == [], f"others may read {found}"
        if os.getuid() == 0:
            look = subprocess.run(["ls", str(self.var)], user=NOBODY + 1, capture_output=True, check=False)
            assert look.returncode != 0, "another user could list the state"

    def leave(self) -> None:
        for line in processes_on(self.var):
            print(f"  still there: {line}")
        shutil.rmtree(self.base, ignore_errors=True)

    def _environment(self) -> dict[str, str]:
        catalogue = self.base.with_suffix(".toml")
        catalogue.write_text(_CATALOGUE.format(far=self.far), encoding="utf-8")
        usual = {"MODELS_FILE": str(catalogue), "SIDESTREAM_LLAMACPP_URL": _DEAD, "SIDESTREAM_DISCOVER": "0"}
        env = environment(self.var, HOME=str(self.root), **usual) | self.place.env
        del env["SIDESTREAM_VAR"]
        return env

    def _give_to(self, user: int) -> None:
        try:
            subprocess.run([self.python, "-c", ""], user=user, check=True)
        except (OSError, subprocess.SubprocessError) as exc:
            raise Skipped(f"user {user} cannot run {self.python}; --python names another ({exc})") from exc
        for path in (self.root, *self.root.rglob("*")):
            os.chown(path, user, user, follow_symlinks=False)


def after_a_hangup(stay: Stay) -> None:
    with stay.running() as (up, address):
        os.kill(up.pid, signal.SIGHUP)
        assert ask(address, "near") == PROMPT
        assert "stopping" not in up.text


def with_one_redis_after_another(stay: Stay) -> None:
    """Start with the machine's Redis, then with the one that the requirements bring, then with the first again."""
    if not shutil.which("redis-server"):
        raise Skipped("there is no redis-server on the PATH")
    without = stay.base.with_suffix(".bin")
    without.mkdir(exist_ok=True)
    for program in ("sh", "env"):
        (without / program).symlink_to(shutil.which(program) or program)
    for path in (os.environ["PATH"], str(without), os.environ["PATH"]):
        stay.start_and_ask(PATH=path)


def under_an_authority_of_its_own(stay: Stay) -> None:
    with far_service(stay.base.parent) as service:
        stay.far = service.address
        stay.start_and_ask("far", TEXT_SAID, SIDESTREAM_CA_FILE=str(service.authority))
        stay.start_and_ask("far", TEXT_SAID, SSL_CERT_FILE=str(service.authority))


def behind_a_proxy(stay: Stay) -> None:
    with far_service(stay.base.parent) as service:
        stay.far = f"https://{FAR}/v1"
        stay.start_and_ask(
            "far", TEXT_SAID, SIDESTREAM_CA_FILE=str(service.authority), SIDESTREAM_PROXY=service.proxy.url
        )


def with_dead_proxies(stay: Stay) -> None:
    dead = {name: _DEAD for word in ("http_proxy", "https_proxy", "all_proxy") for name in (word, word.upper())}
    with far_service(stay.base.parent) as service:
        stay.far = service.address
        stay.start_and_ask("far", TEXT_SAID, SIDESTREAM_CA_FILE=str(service.authority), **dead)


PLACES = (
    Place("plain"),
    Place("#", "C#/one"),
    Place("?", "what?now/one"),
    Place("%25", "50%25 off/one"),
    Place("spaces", "a b  c/d e "),
    Place("unicode", "é ü 你好 🙂/شمس"),
    Place("punctuation", "a+b&c=[d];e,f@g:h!'\"$HOME\\/-x"),
    Place("218 bytes", length=218),
    Place("umask 022", umask="022"),
    Place("umask 077", umask="077"),
    Place("umask 000", umask="000"),
    Place("not root", user=NOBODY),
    Place("nohup, then HUP", wrapper=("nohup",), visit=after_a_hangup),
    Place("another Redis first", visit=with_one_redis_after_another),
    Place("own authority", visit=under_an_authority_of_its_own),
    Place("behind a proxy", visit=behind_a_proxy),
    Place("dead proxies", visit=with_dead_proxies),
    Place("stray settings", env={"DJANGO_SETTINGS_MODULE": "otherproject.settings", "CELERY_BROKER_URL": "amqp://x"}),
    Place("C locale", "é", env={"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
)
