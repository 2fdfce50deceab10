"""How a dialect is called: where, with which headers and body, and how its answer is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import quote

from streaming.upstream.http import Deadlines, Dialect, HttpCall, Limits
from streaming.upstream.ports import ChatRequest
from streaming.upstream.request import Headers, bearer

# From key, URL and body: some services want the whole request signed.
Authorise: TypeAlias = Callable[[str, str, bytes], Headers]


@dataclass(frozen=True, slots=True)
class DialectSpec:
    """`path` may hold {model}; it is added to the operator's address, which ends where the provider's version does."""

    path: str
    build_body: Callable[[ChatRequest], dict[str, Any]]
    open: Callable[[Limits], Dialect]
    authorise: Authorise = bearer  # Not asked where there is no key.
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HttpUpstream:
    """A configured model service that speaks a dialect over HTTP."""

    spec: DialectSpec
    address: str
    key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    deadlines: Deadlines = field(default_factory=Deadlines)
    limits: Limits = field(default_factory=Limits)

    def call(self, request: ChatRequest) -> HttpCall:
        """
        Prepare a call.

        Raises:
            UpstreamError: unsupported_parameter; nothing was sent.
        """
        url = self.address.rstrip("/") + self.spec.path.format(model=quote(request.model, safe=""))
        content = json.dumps(self.spec.build_body(request), ensure_ascii=False, separators=(",", ":")).encode()
        headers = {
            **self.spec.headers,
            **(self.spec.authorise(self.key, url, content) if self.key else {}),
            **self.headers,
        }
        secrets = tuple(value for value in (self.key, *self.headers.values()) if value)
        return HttpCall(
            url,
            headers,
            content,
            self.spec.open(self.limits),
            deadlines=self.deadlines,
            limits=self.limits,
            secrets=secrets,
        )
