"""One record, one line, nothing in it that cannot be seen: in every process, however it was started."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from django.conf import settings as django_settings
from hypothesis import given
from hypothesis import strategies as st

from chatapp import presence
from chatapp.logline import LONGEST_BYTES, OneLine, one_line
from chatapp.models import Generation
from chatapp.unseen import UNSEEN, visible
from chatapp.up.grounds import free_port
from chatapp.wiring import web
from streaming.lifecycle import TERMINAL
from tests.chatapp.people import Person
from tests.chatapp.starting import ROOT
from tests.chatapp.test_worker import database_url
from tests.streaming.upstream.server import SSE, serving

FORGED = "ok\n2026-11-29 INFO approved=true user=admin \x1b[2K\u202eevil\u2028\U000e0069\u200b"
LOOK_AGAIN_S = 0.02


def written(message: str, *args: object, fault: BaseException | None = None) -> str:
    trouble = (type(fault), fault, fault.__traceback__) if fault else None
    record = logging.LogRecord("name", logging.ERROR, __file__, 1, message, args, trouble)
    return OneLine("%(levelname)s %(name)s: %(message)s").format(record)


def test_words_of_others_forge_no_line() -> None:
    assert written("a service said %s", FORGED) == (
        r"ERROR name: a service said ok\n2026-11-29 INFO approved=true user=admin "
        r"\x1b[2K\u202eevil\u2028\U000e0069\u200b"
    )


def test_a_traceback_stands_in_the_line_of_its_record() -> None:
    line = written("it failed", fault=ValueError(FORGED))
    assert line.isprintable()
    assert line.startswith(r"ERROR name: it failed\n")


@pytest.mark.parametrize("category", ["Cc", "Cf", "Cs", "Zl", "Zp"])
def test_all_that_unicode_calls_a_control_or_a_format_is_shown(category: str) -> None:
    chars = [chr(point) for point in range(sys.maxunicode + 1) if unicodedata.category(chr(point)) == category]
    assert [hex(ord(char)) for char in chars if not UNSEEN.match(char)] == []


def test_words_of_every_script_stay_as_they_are() -> None:
    text = "Grüße, 你好, مرحبا, שלום, नमस्ते, สวัสดี, 🙂 – «…»"
    assert visible(text) == text


@given(st.text(st.characters()))
def test_a_line_can_always_be_written_and_is_one(text: str) -> None:
    line = one_line(text)
    assert line.encode().decode().splitlines() in ([line], [])
    assert UNSEEN.search(line) is None


@given(st.text(st.characters(), min_size=1), st.integers(1, 20_000))
def test_a_record_is_bounded_and_keeps_its_head_and_its_end(text: str, times: int) -> None:
    line = written("begin %s end", text * times)
    assert len(line.encode()) <= LONGEST_BYTES
    assert (line[:17], line[-3:]) == ("ERROR name: begin", "end")


# Processes, as README's section on many machines starts them


@contextlib.contextmanager
def by_hand(
    environ: dict[str, str], *command: str, wrapper: tuple[str, ...] = ()
) -> Iterator[tuple[subprocess.Popen[bytes], list[str]]]:
    """Run it, and give its lines once the block is left."""
    lines: list[str] = []
    process = subprocess.Popen(
        [*wrapper, sys.executable, "-m", *command],
        cwd=ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        yield process, lines
    finally:
        process.terminate()
        lines += process.communicate(timeout=30)[0].decode().split("\n")


@pytest.fixture
def environ(redis_url: str, tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DATABASE_URL": database_url(),
        "REDIS_URL": redis_url,
        "SIDESTREAM_VAR": str(tmp_path),
        "SIDESTREAM_SECRET_KEY": django_settings.SECRET_KEY,
        "SIDESTREAM_DRAIN_GRACE_S": "1",
    }


def assert_nothing_is_forged(lines: list[str]) -> None:
    assert [line for line in lines if UNSEEN.search(line)] == []
    assert [line for line in lines if line.startswith("2026-11-29 INFO")] == []
    assert [line for line in lines if r"\x1b[2K\u202eevil" in line], lines


WORKER = ("celery", "-A", "chatapp", "worker", "--pool", "threads", "--concurrency", "4", "-Q", "generations")
DAPHNE = ("daphne", "-b", "127.0.0.1", "-p")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("site")
async def test_a_service_forges_no_line_in_the_log_of_a_worker(
    guest: Person, environ: dict[str, str], tmp_path: Path
) -> None:
    """And signals that were ignored at the start of the worker stay so, though Celery would handle them."""
    body = b"data: " + json.dumps({"error": {"message": FORGED}}).encode() + b"\n\n"
    async with serving(lambda connection: connection.send(SSE, body)) as server:
        catalogue = tmp_path / "models.toml"
        catalogue.write_text(
            f'[[models]]\nid = "echo"\nlabel = "E"\nadapter = "openai_chat"\nmodel = "m"\naddress = "{server.url}"\n'
        )
        nohup = ("sh", "-c", 'trap "" INT HUP; exec "$@"', "sh")
        with by_hand({**environ, "MODELS_FILE": str(catalogue)}, *WORKER, wrapper=nohup) as (process, lines):
            while not await presence.living(web().redis):
                assert process.poll() is None
                await asyncio.sleep(LOOK_AGAIN_S)
            gen = (await guest.ask(await guest.begin(), "Say this", "echo"))["generations"][0]["gen"]
            while (await Generation.objects.aget(pk=gen)).state not in TERMINAL:
                await asyncio.sleep(LOOK_AGAIN_S)
            ignored = ignored_by(process.pid)
    assert_nothing_is_forged(lines)
    assert {signal.SIGHUP, signal.SIGINT} <= ignored


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("site")
async def test_a_browser_forges_no_line_in_the_log_of_a_web_process(environ: dict[str, str]) -> None:
    port = free_port()
    background = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
    with by_hand(environ, *DAPHNE, str(port), "chatapp.asgi:application", wrapper=background) as (process, lines):
        await until_it_answers(process, port)
        for request in hostile_requests():
            await asyncio.to_thread(ask, port, request + b"\r\nConnection: close\r\n\r\n")
        ignored = ignored_by(process.pid)
    assert [line for line in lines if UNSEEN.search(line) or line.startswith("2026-11-29")] == []
    assert [line for line in lines if line.startswith("127.0.0.1:")], "Daphne's access log"
    assert signal.SIGINT in ignored


def hostile_requests() -> list[bytes]:
    raw = FORGED.replace("\n", "\x85").replace(" ", "\xa0").encode()
    escaped = "".join(f"%{byte:02x}" for byte in FORGED.encode()).encode()
    return [
        b"GET /%s HTTP/1.1\r\nHost: localhost" % raw,
        b"GET / HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s" % (raw, raw),
        b"GET /static/%s HTTP/1.1\r\nHost: localhost" % escaped,
        b"GET /ws/conversations/%s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade" % escaped,
    ]


async def until_it_answers(process: subprocess.Popen[bytes], port: int) -> None:
    async with httpx.AsyncClient() as client:
        while True:
            assert process.poll() is None
            with contextlib.suppress(httpx.TransportError):
                await client.get(f"http://127.0.0.1:{port}/healthz")
                return
            await asyncio.sleep(LOOK_AGAIN_S)


def ask(port: int, head: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(head)
        while connection.recv(65536):
            pass


def ignored_by(pid: int) -> set[signal.Signals]:
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    mask = int(status["SigIgn"], 16)
    return {number for number in signal.Signals if mask >> (number - 1) & 1}


def test_a_warning_and_a_fault_that_nobody_caught_are_records(environ: dict[str, str]) -> None:
    program = (
        "import chatapp.asgi, warnings, threading; from chatapp.logline import tell_uncaught; tell_uncaught();"
        "words = 'ok\\n2026-11-29 INFO \\x1b[2K\\u202eevil';"
        "warnings.warn(words); other = threading.Thread(target=lambda: int(words)); other.start(); other.join();"
        "raise ValueError(words)"
    )
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    lines = ended.stderr.rstrip("\n").split("\n")
    assert [line.partition(": ")[0] for line in lines] == [
        "WARNING py.warnings", "ERROR chatapp.logline", "CRITICAL chatapp.logline",
    ]  # fmt: skip
    assert_nothing_is_forged(lines)
