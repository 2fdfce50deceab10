"""The small parts that settings.py is made of."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chatapp.redisurl import broker_url, client_url
from chatapp.secretkey import kept_key


@pytest.mark.parametrize(
    ("given", "client", "broker"),
    [
        ("unix:///run/r.sock", "unix:///run/r.sock", "redis+socket:///run/r.sock"),
        ("redis+socket:///run/r.sock", "unix:///run/r.sock", "redis+socket:///run/r.sock"),
        ("unix:///run/r.sock?db=2", "unix:///run/r.sock?db=2", "redis+socket:///run/r.sock?virtual_host=2"),
        ("redis+socket:///r.sock?virtual_host=2", "unix:///r.sock?db=2", "redis+socket:///r.sock?virtual_host=2"),
        ("redis://h:6379/1", "redis://h:6379/1", "redis://h:6379/1"),
        ("rediss://:pw@h/0", "rediss://:pw@h/0", "rediss://:pw@h/0"),
    ],
)
def test_one_redis_setting_serves_both_libraries(given: str, client: str, broker: str) -> None:
    assert (client_url(given), broker_url(given)) == (client, broker)


def test_the_key_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "var" / "secret_key"
    assert kept_key(path) == kept_key(path)


def test_the_key_is_long_enough_for_django(tmp_path: Path) -> None:
    assert len(kept_key(tmp_path / "secret_key")) >= 50


def test_only_its_user_may_read_the_key(tmp_path: Path) -> None:
    path = tmp_path / "secret_key"
    kept_key(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_processes_that_start_together_agree_on_the_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(kept_key, [tmp_path / "secret_key"] * 8))
    assert len(keys) == 1


def test_no_draft_of_the_key_is_left_behind(tmp_path: Path) -> None:
    kept_key(tmp_path / "secret_key")
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]
