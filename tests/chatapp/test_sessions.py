"""Sessions last as long as they are used, over every transport, and change nothing that another tab changed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as configured
from django.contrib.sessions.models import Session
from django.utils.timezone import now
from pytest_django import Settings

from chatapp.database import in_database
from chatapp.sessions import SessionStore
from chatapp.wiring import web
from tests.chatapp.listening import over_sse, over_websocket
from tests.chatapp.people import Person, problem_code

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]

NOTICE = '{"v":1,"type":"turn","turn":{}}'
AGE = timedelta(seconds=configured.SESSION_COOKIE_AGE)


async def age_by(age: timedelta) -> None:
    """Let every session be used last so long ago."""
    await Session.objects.aupdate(expire_date=now() + AGE - age)


async def left() -> timedelta:
    return (await Session.objects.aget()).expire_date - now()


def new_cookie(response: Any) -> Any:
    return response.cookies.get(configured.SESSION_COOKIE_NAME)


async def test_a_session_that_is_used_is_renewed_with_its_cookie(guest: Person) -> None:
    path = await guest.begin()
    await age_by(timedelta(days=2))
    cookie = new_cookie(await guest.get(f"{path}/sync"))
    assert cookie["max-age"] == configured.SESSION_COOKIE_AGE
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/")
    assert await left() > AGE - timedelta(minutes=1)


async def test_it_costs_one_write_a_day(guest: Person) -> None:
    path = await guest.begin()
    await age_by(timedelta(hours=23))
    assert new_cookie(await guest.get(f"{path}/sync")) is None
    assert await left() < AGE - timedelta(hours=22)


async def test_a_short_session_lives_on_for_as_long_as_it_is_used(guest: Person, settings: Settings) -> None:
    settings.SESSION_COOKIE_AGE = 4
    path = await guest.begin()
    for _ in range(3):
        await Session.objects.aupdate(expire_date=now() + timedelta(seconds=1))
        assert new_cookie(await guest.get(f"{path}/sync"))["max-age"] == 4
    assert timedelta(seconds=3) < await left() <= timedelta(seconds=4)


@pytest.mark.parametrize("path", ["/", "/api/session", "/api/nothing-here"])
async def test_a_page_renews_too(guest: Person, path: str) -> None:
    await guest.begin()
    await age_by(timedelta(days=2))
    renewed = new_cookie(await guest.get(path)) is not None
    assert renewed == (path != "/api/nothing-here")  # Where nobody asks who asks, no session was used.


async def test_a_visitor_who_only_looks_gets_no_session(guest: Person) -> None:
    assert new_cookie(await guest.get("/api/session")) is None
    assert not await Session.objects.aexists()


async def test_an_event_stream_renews_as_it_opens(guest: Person) -> None:
    path = await guest.begin()
    await age_by(timedelta(days=2))
    async with over_sse(guest, path, "0-0"):
        assert await left() > AGE - timedelta(minutes=1)


async def test_a_websocket_asks_its_page_to_renew(guest: Person, settings: Settings) -> None:
    path = await guest.begin()
    settings.STREAM_RECHECK_S = 0
    async with over_websocket(guest, path, (await guest.sync(path))["cursor"]) as frames:
        await age_by(timedelta(days=2))
        await web().log.announce(path.rpartition("/")[2], NOTICE)
        assert [(await anext(frames))["type"] for _ in range(2)] == ["renew", "events"]
        assert (await guest.get("/api/session")).status_code == 204
        await web().log.announce(path.rpartition("/")[2], NOTICE)
        assert (await anext(frames))["type"] == "events"


async def test_what_another_tab_changed_meanwhile_stays(guest: Person) -> None:
    await guest.begin()
    await age_by(timedelta(days=2))
    stale = SessionStore((await Session.objects.aget()).session_key)
    await in_database(stale.items)
    await Session.objects.aupdate(session_data="another tab's")
    assert not await in_database(stale.renew)
    assert (await Session.objects.aget()).session_data == "another tab's"


async def test_a_session_that_ended_meanwhile_is_not_made_again(guest: Person) -> None:
    await guest.begin()
    await age_by(timedelta(days=2))
    stale = SessionStore((await Session.objects.aget()).session_key)
    await in_database(stale.items)
    await Session.objects.all().adelete()
    assert not await in_database(stale.renew)
    assert not await Session.objects.aexists()


# The secret key changes


def rotate_key(settings: Settings, *, keep_old: bool) -> None:
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY] if keep_old else []
    settings.SECRET_KEY = "another key, of an operator who changed it"


async def test_a_renewed_session_no_longer_needs_the_old_key(guest: Person, settings: Settings) -> None:
    path = await guest.begin()
    await age_by(timedelta(days=2))
    rotate_key(settings, keep_old=True)
    assert (await guest.get(f"{path}/sync")).status_code == 200
    settings.SECRET_KEY_FALLBACKS = []
    assert (await guest.get(f"{path}/sync")).status_code == 200


async def test_a_session_without_its_key_is_kept_until_the_key_is_back(guest: Person, settings: Settings) -> None:
    path, key = await guest.begin(), settings.SECRET_KEY
    await age_by(timedelta(days=2))
    rotate_key(settings, keep_old=False)
    assert problem_code(await guest.get(f"{path}/sync"), 404) == "not_found"
    settings.SECRET_KEY = key
    assert (await guest.get(f"{path}/sync")).status_code == 200


async def test_a_websocket_signs_nobody_out_when_the_key_changes(alice: Person, settings: Settings) -> None:
    path = await alice.begin()
    cursor = (await alice.sync(path))["cursor"]
    rotate_key(settings, keep_old=True)
    async with over_websocket(alice, path, cursor) as frames:
        await web().log.announce(path.rpartition("/")[2], NOTICE)
        await anext(frames)
    assert (await alice.get(f"{path}/sync")).status_code == 200


async def test_a_websocket_leaves_an_unverified_session_to_others(alice: Person, settings: Settings) -> None:
    path, key = await alice.begin(), settings.SECRET_KEY
    rotate_key(settings, keep_old=False)
    with pytest.raises(AssertionError, match=r"websocket\.close"):
        async with over_websocket(alice, path, "0-0") as frames:
            await anext(frames)
    settings.SECRET_KEY = key
    assert (await alice.get(f"{path}/sync")).status_code == 200
