"""Live connections: the same frames over every transport, and what closes or refuses them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from pytest_django import Settings

from chatapp.consumers import MAX_BURST, MAX_MESSAGE
from chatapp.models import Conversation, Generation
from chatapp.views.streams import MAX_BYTES
from chatapp.wiring import Worker, web
from streaming.events import Start, TextDelta
from tests.chatapp.conftest import say
from tests.chatapp.listening import (
    TRANSPORTS,
    Listen,
    close_code,
    events_until_the_end,
    folded,
    socket_of,
)
from tests.chatapp.people import Person, problem_code

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]

NOTICE = '{"v":1,"type":"turn","turn":{}}'

transports = pytest.mark.parametrize("listen", TRANSPORTS.values(), ids=TRANSPORTS.keys())


async def asked(person: Person) -> tuple[str, str, str]:
    """Ask; give the conversation's path, the generation and the cursor before anything happened."""
    path = await person.begin()
    gen = (await person.ask(path, "Say *this* again"))["generations"][0]["gen"]
    return path, gen, (await person.sync(path))["cursor"]


# Frames


@transports
async def test_a_whole_answer_is_followed_live(guest: Person, worker: Worker, listen: Listen) -> None:
    path, gen, cursor = await asked(guest)
    async with listen(guest, path, cursor) as frames:
        await worker.runtime.drive(gen)
        heard = folded(gen, await events_until_the_end(frames))
    assert heard.text == (await Generation.objects.aget(pk=gen)).text != ""


async def test_every_transport_gives_the_same_events(guest: Person, worker: Worker) -> None:
    path, gen, cursor = await asked(guest)
    await worker.runtime.drive(gen)
    heard = []
    for listen in TRANSPORTS.values():
        async with listen(guest, path, cursor) as frames:
            heard.append(await events_until_the_end(frames))
    assert heard[0] == heard[1] == heard[2]


@transports
async def test_sync_and_what_follows_it_give_the_whole(guest: Person, running: Any, listen: Listen) -> None:
    gen = await running(guest)
    path = f"/api/conversations/{(await Generation.objects.aget(pk=gen)).conversation_id}"
    document = await guest.sync(path)
    assert document["turns"][0]["generations"][0]["text"] == "Good"
    async with listen(guest, path, document["cursor"]) as frames:
        await say(gen, TextDelta(" morning"), after=2)
        frame = await anext(frames)
    assert [(event["seq"], event["text"]) for event in frame["events"]] == [(3, " morning")]


async def test_events_carry_their_cursor_as_the_id(guest: Person) -> None:
    path, gen, cursor = await asked(guest)
    await say(gen, Start("echo", "p"))
    response = await guest.get(f"{path}/events?cursor={cursor}")
    parts = aiter(response)
    assert await anext(parts) == b"retry: 1000\n\n"
    identity, data = (await anext(parts)).decode().split("\n")[:2]
    await parts.aclose()
    assert identity.removeprefix("id: ") == json.loads(data.removeprefix("data: "))["cursor"]


async def test_the_last_event_id_wins_over_the_cursor(guest: Person) -> None:
    path, gen, older = await asked(guest)
    await say(gen, Start("echo", "p"), TextDelta("Good"))
    newer = (await guest.sync(path))["cursor"]
    response = await guest.get(f"{path}/events?cursor={older}", **{"Last-Event-ID": newer})
    await say(gen, TextDelta("!"), after=2)
    parts = aiter(response)
    await anext(parts)
    frame = (await anext(parts)).decode()
    await parts.aclose()
    assert '"seq":3' in frame
    assert '"seq":2' not in frame


async def test_no_proxy_or_cache_may_hold_events_back(guest: Person) -> None:
    response = await guest.get(f"{await guest.begin()}/events?cursor=0-0")
    response.close()
    assert response["Content-Type"] == "text/event-stream"
    assert response["Cache-Control"] == "no-cache, no-transform"
    assert response["X-Accel-Buffering"] == "no"
    assert response["Content-Encoding"] == "identity"


async def test_a_response_ends_after_a_mebibyte(guest: Person) -> None:
    path, gen, cursor = await asked(guest)
    await say(gen, Start("echo", "p"))
    for place in range(12):
        await say(gen, TextDelta("x" * 100_000), after=1 + place)
    # The reader is behind by more than a follower may be, so it is sent all in one snapshot.
    response = await guest.get(f"{path}/events?cursor={cursor}")
    assert sum([len(part) async for part in response]) > MAX_BYTES


# Refused


@pytest.mark.parametrize("cursor", ["x", "1", "1-", "1-2-3", "-1-0", "9" * 30 + "-0"])
async def test_a_malformed_cursor_is_refused(guest: Person, cursor: str) -> None:
    path = await guest.begin()
    assert problem_code(await guest.get(f"{path}/events?cursor={cursor}"), 400) == "invalid_cursor"
    assert await code_of(guest, path, cursor) == 4400


async def test_a_cursor_of_the_future_is_refused(guest: Person) -> None:
    path = await guest.begin()
    response = await guest.get(f"{path}/events?cursor=99999999999999-0")
    assert problem_code(response, 400) == "cursor_from_elsewhere"


async def test_a_cursor_of_a_log_that_expired_is_told_to_sync(guest: Person) -> None:
    path = await guest.begin()
    async with TRANSPORTS["sse"](guest, path, "1700000000000-0") as frames:
        assert await anext(frames) == {"type": "resync"}


async def test_over_a_websocket_a_cursor_beyond_the_log_is_told_to_sync(guest: Person) -> None:
    path = await guest.begin()
    async with TRANSPORTS["websocket"](guest, path, "99999999999999-0") as frames:
        assert await anext(frames) == {"type": "resync"}


async def test_another_sites_page_may_not_follow(guest: Person) -> None:
    path = await guest.begin()
    response = await guest.get(f"{path}/events?cursor=0-0", **{"Sec-Fetch-Site": "cross-site"})
    assert problem_code(response, 403) == "cross_site"


@pytest.mark.parametrize(
    "origin", [None, "null", "https://testserver", "http://testserver:8000", "http://evil.example"]
)
async def test_a_socket_from_another_origin_is_refused(guest: Person, origin: str | None) -> None:
    connected, _ = await socket_of(guest, await guest.begin(), origin=origin).connect()
    assert not connected


async def test_a_socket_to_nowhere_is_refused(guest: Person) -> None:
    await guest.begin()
    connected, _ = await socket_of(guest, "/ws/nothing").connect()
    assert not connected


@pytest.mark.parametrize("message", ["null", "x", "{}", '{"type":"ack"}', '{"type":"cancel"}', " " * (MAX_MESSAGE + 1)])
async def test_a_bad_message_closes_the_socket(guest: Person, message: str) -> None:
    socket = socket_of(guest, await guest.begin())
    await socket.connect()
    await socket.send_to(message)
    assert await close_code(socket) == 4400


async def test_a_binary_message_closes_the_socket(guest: Person) -> None:
    socket = socket_of(guest, await guest.begin())
    await socket.connect()
    await socket.send_to(bytes_data=b"ack")
    assert await close_code(socket) == 4400


async def test_a_flood_of_messages_closes_the_socket(guest: Person) -> None:
    socket = socket_of(guest, await guest.begin())
    await socket.connect()
    for _ in range(2 * MAX_BURST):
        await socket.send_to('{"type":"ack","cursor":"1-0"}')
    assert await close_code(socket) == 4429


async def test_too_many_streams_are_refused(guest: Person, settings: Settings) -> None:
    path = await guest.begin()
    open_ones = [await guest.get(f"{path}/events?cursor=0-0") for _ in range(settings.MAX_STREAMS)]
    assert problem_code(await guest.get(f"{path}/events?cursor=0-0"), 429) == "too_many_streams"
    assert await code_of(guest, path) == 4429
    for response in open_ones:
        response.close()


async def test_a_stream_that_ended_makes_room(guest: Person, settings: Settings) -> None:
    path = await guest.begin()
    for _ in range(settings.MAX_STREAMS + 1):
        async with TRANSPORTS["websocket"](guest, path, "0-0"):
            pass


async def test_a_stream_that_was_never_read_makes_room(guest: Person, settings: Settings) -> None:
    path = await guest.begin()
    for _ in range(settings.MAX_STREAMS + 1):
        assert (await guest.get(f"{path}/events?cursor=0-0")).status_code == 200


# Rights that go


@pytest.fixture
def _looked_up_each_time(settings: Settings) -> None:
    """Look rights up before every frame, in place of every minute."""
    settings.STREAM_RECHECK_S = 0.0


async def lose_session(person: Person, path: str) -> None:
    await Session.objects.all().adelete()


async def lose_conversation(person: Person, path: str) -> None:
    await Conversation.objects.all().adelete()


@pytest.mark.usefixtures("_looked_up_each_time")
@pytest.mark.parametrize("lose", [lose_session, lose_conversation])
async def test_a_socket_closes_when_its_right_is_gone(alice: Person, running: Any, lose: Any) -> None:
    gen = await running(alice)
    row = await Generation.objects.aget(pk=gen)
    path = f"/api/conversations/{row.conversation_id}"
    socket = socket_of(alice, path, (await alice.sync(path))["cursor"])
    await socket.connect()
    await web().log.announce(str(row.conversation_id), NOTICE)
    await socket.receive_from()
    await lose(alice, path)
    await web().log.announce(str(row.conversation_id), NOTICE)
    assert await close_code(socket) == 4404


@pytest.mark.usefixtures("_looked_up_each_time")
async def test_an_event_stream_ends_when_its_right_is_gone(alice: Person) -> None:
    path = await alice.begin()
    response = await alice.get(f"{path}/events?cursor=0-0")
    await lose_session(alice, path)
    await web().log.announce(path.rpartition("/")[2], NOTICE)
    assert [part async for part in response] == [b"retry: 1000\n\n"]


async def code_of(person: Person, path: str, cursor: str = "0-0") -> int:
    socket = socket_of(person, path, cursor)
    await socket.connect()
    return await close_code(socket)
