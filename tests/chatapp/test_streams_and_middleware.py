"""Streams go through the real middleware: nothing holds a frame back, takes a thread or sets a time limit."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from contextlib import AsyncExitStack

import pytest
from django.conf import settings as django_settings
from django.core.handlers.asgi import ASGIRequest
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils.module_loading import import_string
from pytest_django import Settings

from chatapp.wiring import web
from tests.chatapp.people import Person
from tests.chatapp.visiting import status_of, visiting

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]

NOTICE = '{"v":1,"type":"turn","turn":{}}'
ACCEPT = {"sse": "text/event-stream", "ndjson": "application/x-ndjson"}
STREAMS = {"events"}  # The names of the routes that stream.

transports = pytest.mark.parametrize("accept", ACCEPT.values(), ids=ACCEPT.keys())


@pytest.mark.parametrize("name", django_settings.MIDDLEWARE)
def test_every_middleware_can_run_without_a_thread_behind_it(name: str) -> None:
    assert import_string(name).async_capable


@transports
async def test_each_frame_gets_through_before_the_next_one_exists(guest: Person, accept: str) -> None:
    path = await guest.begin()
    cursor = (await guest.sync(path))["cursor"]
    async with visiting(guest, f"{path}/events?cursor={cursor}", accept=accept, accept_encoding="gzip, br") as visit:
        status, headers = await visit.head()
        assert (status, headers["content-type"], headers["content-encoding"]) == (200, accept, "identity")
        assert headers.keys().isdisjoint({"content-length", "etag", "transfer-encoding"})
        if accept == ACCEPT["sse"]:
            assert await visit.part() == b"retry: 1000\n\n"
        for _ in range(5):
            await web().log.announce(path.rpartition("/")[2], NOTICE)
            part = await visit.part()
            assert part is not None
            (line,) = [line for line in part.decode().split("\n") if line.startswith(("data: ", "{"))]
            assert json.loads(line.removeprefix("data: "))["events"] == [json.loads(NOTICE)]
        assert visit.said.empty()


@transports
async def test_a_reader_that_hangs_up_ends_its_stream(guest: Person, accept: str) -> None:
    path = await guest.begin()
    async with visiting(guest, f"{path}/events?cursor=0-0", accept=accept) as visit:
        await visit.head()
        assert web().streams.count == 1
    assert (web().streams.count, web().tailer._watched) == (0, {})


async def test_every_route_answers_under_a_time_limit_and_only_the_known_ones_stream(guest: Person) -> None:
    path = await guest.begin()
    turn = await guest.ask(path)
    ids = {"conversation": path.rpartition("/")[2], "gen": turn["generations"][0]["gen"]}
    for pattern in patterns():
        if pattern.name in STREAMS:
            continue
        address = "/" + str(pattern.pattern).removeprefix("^")
        for name, value in ids.items():
            address = address.replace(f"<uuid:{name}>", value)
        # asgiref#348: a limit around an endpoint could meet a sync middleware that waits for the same thread.
        assert await asyncio.wait_for(status_of(guest, address), 20) != 500, address


def patterns() -> list[URLPattern]:
    """Give the application's own routes; the admin's are Django's."""
    found = get_resolver().url_patterns
    assert any(isinstance(one, URLResolver) for one in found)
    return [one for one in found if isinstance(one, URLPattern)]


async def test_an_open_stream_keeps_no_thread(guest: Person, settings: Settings) -> None:
    settings.MAX_STREAMS = 0
    path = await guest.begin()
    async with AsyncExitStack() as stack:

        async def open_streams(count: int) -> None:
            for _ in range(count):
                visit = await stack.enter_async_context(visiting(guest, f"{path}/events?cursor=0-0"))
                await visit.head()
                await visit.part()

        await open_streams(5)
        before = threading.active_count()
        await open_streams(20)
        async with asyncio.timeout(5):
            while threading.active_count() > before:
                await asyncio.sleep(0.01)


async def test_what_a_request_sent_is_let_go_with_its_answer(guest: Person) -> None:
    """The request itself stays until garbage is searched for."""
    path = await guest.begin()
    gc.disable()
    try:
        await guest.post(f"{path}/turns", {"prompt": "a marked prompt"})
        requests = [one for one in gc.get_objects() if type(one) is ASGIRequest]
        assert requests
        assert not [one for one in requests if b"a marked prompt" in one.body]
    finally:
        gc.enable()
