"""A path is a path: it reaches its file whatever its folders are called."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db.utils import ConnectionHandler
from kombu.utils.url import parse_url
from pytest_django import DjangoDbBlocker
from redis import Redis

from chatapp.databaseurl import of_file, of_url
from chatapp.env import with_absolute_paths
from chatapp.redisurl import broker_url, check_redis_url, client_url, has_url, socket_url
from tests.chatapp.folders import NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_database_is_the_file_that_is_named(tmp_path: Path, name: str, django_db_blocker: DjangoDbBlocker) -> None:
    path = tmp_path / name / "sidestream.sqlite3"
    path.parent.mkdir()
    database = ConnectionHandler({"default": of_file(path)})["default"]
    with django_db_blocker.unblock(), database.cursor() as cursor:
        cursor.execute("create table proof (x)")
    database.close()
    assert path.stat().st_size > 0
    assert [found.name for found in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", NAMES)
def test_an_address_may_name_any_file_with_percent_signs(tmp_path: Path, name: str) -> None:
    path = tmp_path / name / "db"
    assert of_url("DATABASE_URL", f"sqlite:///{quote(str(path))}", Path("/unused"))["NAME"] == str(path)


def test_a_relative_file_is_the_same_for_every_process(tmp_path: Path) -> None:
    assert of_url("DATABASE_URL", "sqlite:///db.sqlite3", tmp_path)["NAME"] == str(tmp_path / "db.sqlite3")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("sqlite:////C#/db", "DATABASE_URL holds a #"),
        ("sqlite:////what?now/db", "DATABASE_URL holds a ?"),
        ("sqlite://", "three slashes"),
        ("sqlite:///:memory:", "in memory"),
        ("sqlite://:memory:", "in memory"),
        ("sqlite://db.sqlite3", "three slashes"),
        ("/srv/db.sqlite3", "DATABASE_URL is no address"),
        ("postgres://u:s3cret@host:5x/name", "DATABASE_URL is no address"),
        ("postgres://u:s3cret#@host/name", "DATABASE_URL holds a #"),
        ("nosuch://u:s3cret@host/name", "DATABASE_URL is no address"),
    ],
)
def test_an_address_that_would_be_misread_is_refused_without_its_password(url: str, why: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=why) as refusal:
        of_url("DATABASE_URL", url, Path("/base"))
    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize("name", NAMES)
def test_both_libraries_find_the_socket(tmp_path: Path, name: str) -> None:
    path = tmp_path / name / "redis.sock"
    url = socket_url(path)
    assert has_url(path)
    assert check_redis_url("REDIS_URL", url) == url
    assert Redis.from_url(client_url(url)).connection_pool.connection_kwargs["path"] == str(path)
    assert f"/{parse_url(broker_url(url))['virtual_host']}" == str(path)


def test_a_name_that_is_no_utf_8_has_no_address(tmp_path: Path) -> None:
    assert not has_url(tmp_path / "\udcff" / "redis.sock")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("unix://run/redis.sock", "names no absolute path"),
        ("unix:///run/C#/redis.sock", "holds a #"),
        ("unix:///run/redis.sock?db=one", "no number"),
        ("redis://:s3cret@host/one", "no number"),
        ("redis://:s3#cret@host", "holds a #"),
        ("redis://:s3cret@host:99999/0", "port"),
        ("redis://:s3cret@[::1/0", "brackets"),
        ("http://:s3cret@host", "must begin with redis://"),
        ("host:6379", "must begin with redis://"),
    ],
)
def test_an_address_of_redis_that_would_be_misread_is_refused_without_its_password(url: str, why: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=why) as refusal:
        check_redis_url("REDIS_URL", url)
    assert str(refusal.value).startswith("REDIS_URL ")
    assert "s3" not in str(refusal.value)


def test_processes_in_another_folder_get_the_same_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"MODELS_FILE": "mine.toml", "SIDESTREAM_VAR": " ", "SIDESTREAM_HOSTS": "relative"}
    assert with_absolute_paths(given) == {**given, "MODELS_FILE": str(tmp_path / "mine.toml")}
