"""What the application asks of the database, in whichever of its threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from django.db.backends.signals import connection_created

from chatapp.database import close_pool

_KINDS = ("SELECT", "INSERT", "UPDATE", "DELETE")


class Queries:
    """Notes each query, and where it is SQLite the tables that it reads from end to end."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.scans: list[str] = []

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith(_KINDS) and "pg_advisory" not in sql:  # Rows only, neither transactions nor locks.
            self.asked.append(sql)
            if context["connection"].vendor == "sqlite":
                self._explain(context["connection"].connection, sql, params)
        return execute(sql, params, many, context)

    def _explain(self, connection: Any, sql: str, params: Any) -> None:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {sql.replace('%s', '?')}", params or ())
        self.scans += [f"{step}: {sql}" for *_, step in plan if step.startswith("SCAN chatapp_")]


@asynccontextmanager
async def around_queries(wrapper: Callable[..., Any]) -> AsyncIterator[None]:
    """Execute every query of the application's threads through a wrapper."""
    installed: list[list[Any]] = []

    def install(connection: Any, **_: Any) -> None:
        if wrapper not in connection.execute_wrappers:
            connection.execute_wrappers.append(wrapper)
            installed.append(connection.execute_wrappers)

    connection_created.connect(install)
    await asyncio.to_thread(close_pool)  # So that every connection is a new one.
    try:
        yield
    finally:
        connection_created.disconnect(install)
        for wrappers in installed:
            wrappers.remove(wrapper)


@asynccontextmanager
async def noted_queries() -> AsyncIterator[Queries]:
    queries = Queries()
    async with around_queries(queries):
        yield queries
