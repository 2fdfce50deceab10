"""Serves the page without its server: static files, rendered templates, and the policy that browsers enforce.

What the server would answer to a request, and what it would say on the live connection, each test
says itself, through Playwright's routes.
"""

from __future__ import annotations

import json
import mimetypes
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import django
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template import Context, Engine
from django.urls import path, set_urlconf

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDERS = {"static": ROOT / "static", "tests": ROOT / "tests" / "js", "vectors": ROOT / "tests" / "vectors"}
NONCE = "test"
# As chatapp.settings has it. The page has to work under it, so the tests run under it.
POLICY = (
    f"default-src 'none'; script-src 'nonce-{NONCE}' 'strict-dynamic'; style-src 'self'; img-src 'self'; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "require-trusted-types-for 'script'; trusted-types server-html"
)


def _nowhere(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


urlpatterns = [path("login/", _nowhere, name="login"), path("logout/", _nowhere, name="logout")]


def render(template: str, context: Mapping[str, Any]) -> str:
    """Render one of the page's templates."""
    if not settings.configured:
        settings.configure(STATIC_URL="/static/", INSTALLED_APPS=["django.contrib.staticfiles"])
        django.setup()
    set_urlconf(__name__)
    engine = Engine(dirs=[str(ROOT / "templates")], libraries={"static": "django.templatetags.static"})
    shared = {"request": {"csp_nonce": NONCE}, "csrf_token": "token"}
    return engine.get_template(template).render(Context({**shared, **context}))


class Site:
    """
    A running server. `pages` maps paths to HTML; `replies` maps method and path of the API to a status
    and what is answered, a text as an event stream. `requests` are those that came, with their bodies.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.pages: dict[str, str] = {}
        self.replies: dict[tuple[str, str], tuple[int, Any]] = {}
        self.requests: list[tuple[str, str, Any]] = []


@contextmanager
def serve(port: int = 0) -> Iterator[Site]:
    """Serve until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    site = Site(f"http://127.0.0.1:{server.server_port}")
    _Handler.site = site
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    site: ClassVar[Site]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, _, _ = self.path.partition("?")
        if path.startswith("/api/"):
            self.do_POST()
        elif path in self.site.pages:
            self._answer(self.site.pages[path].encode(), "text/html", POLICY)
        elif (file := _file(path)) and file.is_file():
            self._answer(file.read_bytes(), mimetypes.guess_type(file.name)[0] or "text/plain")
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        path, _, _ = self.path.partition("?")
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.site.requests.append((self.command, path, json.loads(sent) if sent else None))
        nothing = (HTTPStatus.NOT_FOUND, {"detail": "Nothing here.", "code": "not_found"})
        status, body = self.site.replies.get((self.command, path), nothing)
        if isinstance(body, str):
            self._answer(body.encode(), "text/event-stream", status=status)
        else:
            self._answer(b"" if body is None else json.dumps(body).encode(), "application/json", status=status)

    do_PATCH = do_DELETE = do_POST  # noqa: N815 - http.server asks for these names.

    def _answer(self, body: bytes, kind: str, policy: str | None = None, *, status: int = HTTPStatus.OK) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        # Long enough for one run, so that a context loads each file once.
        self.send_header("Cache-Control", "max-age=600" if self.path.startswith("/static/") else "no-store")
        if policy:
            self.send_header("Content-Security-Policy", policy)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep test output to the tests."""


def _file(path: str) -> Path | None:
    _, folder, *rest = path.split("/")
    return FOLDERS[folder].joinpath(*rest) if folder in FOLDERS and ".." not in rest else None
