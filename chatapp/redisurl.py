"""One setting for Redis, in the two spellings that redis-py and Celery want."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit


def client_url(url: str) -> str:
    """Give the spelling of redis-py: `unix:///path?db=1`, `redis://…`, `rediss://…`."""
    return f"unix://{_socket_path(url)}{_query(url, 'db')}" if _is_socket(url) else url


def broker_url(url: str) -> str:
    """Give the spelling of Celery: `redis+socket:///path?virtual_host=1`, `redis://…`, `rediss://…`."""
    return f"redis+socket://{_socket_path(url)}{_query(url, 'virtual_host')}" if _is_socket(url) else url


def _is_socket(url: str) -> bool:
    return urlsplit(url).scheme in ("unix", "redis+socket")


def _socket_path(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path}"


def _query(url: str, name: str) -> str:
    query = parse_qs(urlsplit(url).query)
    database = query.get("db") or query.get("virtual_host")
    return f"?{name}={database[0]}" if database else ""
