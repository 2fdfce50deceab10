"""Behind nginx as it comes, with its buffering on: answers still stream."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.figures import patience
from e2e.product import Product, closed_port
from e2e.tap import Tap
from e2e.verbs import Chat, squeezed, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

# nginx lies in sbin, which is not on every user's PATH.
NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
# A word is on the screen this soon after it was said, the proxy's way included.
BEHIND_S = 1.0
# Buffering of responses is nginx's default and is left alone; only upgrades have to be asked for.
CONFIG = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  map $http_upgrade $connection_upgrade {{ default upgrade; "" ""; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass {to};
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
    }}
  }}
}}
"""


@pytest.fixture(scope="module")
def proxy(sidestream: Product, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of an nginx in front of the product."""
    if NGINX is None:
        pytest.skip("needs nginx: install it, or run .ci/run, which does")
    folder, port = tmp_path_factory.mktemp("nginx"), closed_port()
    (folder / "nginx.conf").write_text(CONFIG.format(folder=folder, port=port, to=sidestream.url))
    process = subprocess.Popen([NGINX, "-p", str(folder), "-c", "nginx.conf", "-e", str(folder / "nginx.log")])
    try:
        _wait_until_it_listens(process, port, folder)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            break
        else:
            return
    pytest.fail(f"nginx does not listen:\n{(folder / 'nginx.log').read_text()}")


@pytest.mark.skipif(sys.platform != "linux", reason="nginx's paths are written for Linux")
@pytest.mark.parametrize(("transport", "used"), [("socket", "socket"), ("sse", "events")])
async def test_answers_stream_through_nginx(chat: Chat, tap: Tap, proxy: str, transport: str, used: str) -> None:
    await chat.open_asked("Drip", "tap-a", transport=transport, base=proxy)
    await chat.begun(1)
    for _ in range(5):
        said = squeezed(tap.said["tap-a"])

        async def is_shown(said: str = said) -> bool:
            return (await chat.shown())[0].startswith(said)

        await until(is_shown, within_s=BEHIND_S * patience())
    assert await chat.page.locator("conversation-view").get_attribute("data-transport") == used
    tap.finish()
    await chat.settled()
    assert await chat.copied(1) == tap.said["tap-a"]
