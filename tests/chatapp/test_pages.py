"""Pages, their policy, static files, sign-in, the operator's admin, and the checks for supervisors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from pytest_django import Settings

from chatapp import presence
from chatapp.wiring import web
from tests.chatapp.people import Person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]


def embedded(response: Any, element: str) -> Any:
    """Read a JSON block of the page."""
    found = re.search(f'<script id="{element}"[^>]*>(.*?)</script>', response.content.decode(), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def page_of(path: str) -> str:
    return path.replace("/api/conversations/", "/c/")


def directives(response: Any) -> dict[str, str]:
    policy = response["Content-Security-Policy"].split(";")
    return {name: rest for name, _, rest in (part.strip().partition(" ") for part in policy)}


async def test_the_first_page_offers_the_models(guest: Person) -> None:
    models = embedded(await guest.get("/"), "models")
    assert [model["id"] for model in models] == ["echo", "warm", "keyless", "endless"]


async def test_the_first_page_lists_conversations_newest_first(guest: Person) -> None:
    older, newer = await guest.begin(), await guest.begin()
    await guest.ask(older, "Older, used last")
    page = (await guest.get("/")).content.decode()
    assert page.index(page_of(older)) < page.index(page_of(newer))


async def test_a_visitor_of_the_first_page_has_no_session(guest: Person) -> None:
    await guest.get("/")
    assert set(guest.client.cookies) == {"csrftoken"}


async def test_a_conversations_page_holds_its_sync_document(guest: Person) -> None:
    path = await guest.begin()
    await guest.ask(path)
    known = embedded(await guest.get(page_of(path)), "sync-document")
    assert known["turns"] == (await guest.sync(path))["turns"]


async def test_a_conversations_page_says_where_its_stream_is(guest: Person) -> None:
    path = await guest.begin()
    urls = embedded(await guest.get(page_of(path)), "urls")
    assert (urls["events"], urls["socket"]) == (f"{path}/events", path.replace("/api/", "/ws/"))


async def test_no_cache_keeps_a_page(guest: Person) -> None:
    assert (await guest.get("/"))["Cache-Control"] == "no-store"


async def test_a_page_that_does_not_exist_is_a_page(guest: Person) -> None:
    response = await guest.get("/nowhere")
    assert (response.status_code, response["Content-Type"]) == (404, "text/html; charset=utf-8")


# Policy


async def test_only_scripts_with_the_pages_nonce_run(guest: Person) -> None:
    response = await guest.get("/")
    found = re.search(r'<script type="module"[^>]* nonce="([^"]+)"', response.content.decode())
    assert found is not None
    assert directives(response)["script-src"] == f"'nonce-{found[1]}' 'strict-dynamic'"


async def test_each_page_has_a_nonce_of_its_own(guest: Person) -> None:
    first, second = [directives(await guest.get("/"))["script-src"] for _ in range(2)]
    assert first != second


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("default-src", "'none'"),
        ("style-src", "'self'"),
        ("img-src", "'self'"),
        ("connect-src", "'self'"),
        ("form-action", "'self'"),
        ("base-uri", "'none'"),
        ("frame-ancestors", "'none'"),
        ("require-trusted-types-for", "'script'"),
        ("trusted-types", "server-html"),
    ],
)
async def test_the_policy_is_strict(guest: Person, name: str, value: str) -> None:
    assert directives(await guest.get("/"))[name] == value


@pytest.mark.parametrize("path", ["/", "/api/models", "/nowhere", "/healthz"])
async def test_every_answer_forbids_guessing_types_and_framing(guest: Person, path: str) -> None:
    response = await guest.get(path)
    assert (response["X-Content-Type-Options"], response["X-Frame-Options"]) == ("nosniff", "DENY")


async def test_the_session_cookie_is_not_for_scripts_or_other_sites(guest: Person) -> None:
    await guest.begin()
    cookie = guest.client.cookies["sidestream_session"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")


def test_the_settings_pass_djangos_deployment_checks(settings: Settings) -> None:
    call_command("check", deploy=True, fail_level="WARNING")


# Static files


async def test_static_files_need_no_step_before_the_first_start(guest: Person) -> None:
    response = await guest.get("/static/js/main.js")
    assert (response.status_code, response["Content-Type"]) == (200, 'text/javascript; charset="utf-8"')


async def test_a_static_file_that_is_known_is_not_sent_again(guest: Person) -> None:
    first = await guest.get("/static/js/main.js")
    again = await guest.get("/static/js/main.js", **{"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/static/../chatapp/settings.py", "/static/%2e%2e/manage.py", "/static/nothing.js"])
async def test_nothing_but_static_files_is_served(guest: Person, path: str) -> None:
    assert (await guest.get(path)).status_code == 404


# Sign-in


async def test_the_sign_in_page_shows(guest: Person) -> None:
    assert (await guest.get("/login")).status_code == 200


async def test_a_wrong_password_signs_nobody_in(alice: Person, guest: Person) -> None:
    response = await guest.client.post("/login", {"username": "alice", "password": "wrong"})
    assert (response.status_code, "sidestream_session" in guest.client.cookies) == (200, False)


async def test_after_sign_in_one_is_not_sent_to_another_site(alice: Person, guest: Person) -> None:
    credentials = {"username": "alice", "password": "alice's password", "next": "https://evil.example/"}
    assert (await guest.client.post("/login", credentials))["Location"] == "/"


# Admin


@pytest.fixture
async def operator(site: None) -> Person:
    """May see everything, and changes nothing."""
    person = Person()
    await person.client.aforce_login(await User.objects.acreate_superuser("operator", password="x"))
    return person


@pytest.mark.parametrize(("model", "words"), [("conversation", "sky"), ("generation", "morning"), ("eventarchive", "")])
@pytest.mark.parametrize("found", [True, False])
async def test_the_operator_can_search(
    operator: Person, alice: Person, finish: Any, model: str, words: str, found: bool
) -> None:
    await finish(await alice.ask(await alice.begin(), "Why is the sky blue?"))
    response = await operator.get(f"/admin/chatapp/{model}/?q={words if found else 'nonsense'}")
    assert (b"field-__str__" in response.content or b"<tbody>" in response.content) is found


async def test_the_operator_reads_an_archive(operator: Person, alice: Person, finish: Any) -> None:
    turn = await alice.ask(await alice.begin())
    await finish(turn)
    gen = turn["generations"][0]["gen"]
    page = (await operator.get(f"/admin/chatapp/eventarchive/{gen}/change/")).content.decode()
    assert "text_delta" in page


@pytest.mark.parametrize("page", ["add/", "{pk}/delete/"])
async def test_the_operator_changes_nothing(operator: Person, alice: Person, page: str) -> None:
    path = await alice.begin()
    response = await operator.get(f"/admin/chatapp/conversation/{page.format(pk=path[-36:])}")
    assert response.status_code == 403


async def test_a_user_is_no_operator(alice: Person) -> None:
    assert (await alice.get("/admin/")).status_code == 302


async def test_the_admin_has_a_policy_its_scripts_can_work_under(operator: Person) -> None:
    assert directives(await operator.get("/admin/"))["script-src"] == "'self'"


# Health


async def test_a_living_server_says_so(guest: Person) -> None:
    assert (await guest.get("/healthz")).content == b"ok\n"


async def test_without_a_worker_the_server_is_not_ready(guest: Person) -> None:
    response = await guest.get("/readyz")
    assert (response.status_code, response.json()["ready"], response.json()["missing"]) == (503, False, ["worker"])


async def test_a_worker_that_gave_a_sign_just_now_is_enough(guest: Person) -> None:
    await web().redis.zadd(presence.KEY, {"host:1": (await web().redis.time())[0] * 1000})
    assert (await guest.get("/readyz")).json() == {"ready": True, "missing": [], "why": {}}


async def test_a_worker_that_was_silent_for_long_is_not(guest: Person) -> None:
    await web().redis.zadd(presence.KEY, {"host:1": (await web().redis.time())[0] * 1000 - 60_000})
    assert (await guest.get("/readyz")).json()["missing"] == ["worker"]


async def test_without_redis_the_server_is_not_ready(guest: Person, no_redis: Any) -> None:
    await no_redis()
    why = {"redis": "Redis cannot be reached."}
    assert (await guest.get("/readyz")).json() == {"ready": False, "missing": ["redis"], "why": why}


def test_no_template_writes_a_script_without_a_nonce() -> None:
    templates = Path(__file__).parents[2] / "templates"
    for template in templates.rglob("*.html"):
        for script in re.findall(r"<script[^>]*>", template.read_text()):
            assert "nonce=" in script, template.name
