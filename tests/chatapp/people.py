"""People with browsers: alice and bob have accounts, the guests have only their cookies."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.test import AsyncClient

# As the test client names the host.
HOST = "testserver"


@dataclass
class Person:
    """Somebody's browser. Verbs give the response; JSON bodies are encoded here."""

    client: AsyncClient = field(default_factory=AsyncClient)

    async def get(self, path: str, **headers: str) -> Any:
        return await self.client.get(path, headers=headers)

    async def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return await self.send("post", path, body, **headers)

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = body if isinstance(body, bytes) else json.dumps({} if body is None else body)
        return await getattr(self.client, method)(path, data, content_type="application/json", headers=headers)

    async def begin(self) -> str:
        """Make a conversation; give its path in the API."""
        response = await self.post("/api/conversations")
        assert response.status_code == 201
        return f"/api/conversations/{response.json()['id']}"

    async def ask(self, path: str, prompt: str = "Hello", *models: str) -> dict[str, Any]:
        """Add a turn in the conversation; give it as the sync document has it."""
        response = await self.post(f"{path}/turns", a_turn(*models, prompt=prompt))
        assert response.status_code == 201, response.content
        turn: dict[str, Any] = response.json()["turn"]
        return turn

    async def sync(self, path: str) -> dict[str, Any]:
        response = await self.get(f"{path}/sync")
        assert response.status_code == 200
        document: dict[str, Any] = response.json()
        return document

    @property
    def cookie(self) -> str:
        return f"{settings.SESSION_COOKIE_NAME}={self.client.cookies[settings.SESSION_COOKIE_NAME].value}"


def a_turn(*models: str, **changes: Any) -> dict[str, Any]:
    panes = [{"id": str(uuid.uuid4()), "model": model} for model in models or ("echo",)]
    return {"prompt": "Hello", "panes": panes, "key": str(uuid.uuid4()), **changes}


def problem_code(response: Any, status: int) -> str:
    """Check that the response is a whole problem document; give its code."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    assert problem["status"] == status
    assert {"type", "title", "code", "detail"} <= problem.keys()
    assert problem["detail"].endswith(".")
    return str(problem["code"])
