"""AWS Signature Version 4, for one POST of JSON. Pure: the time is given."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, urlsplit

ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class Credentials:
    access: str
    secret: str
    token: str = ""  # With temporary credentials only.


def parse_credentials(key: str) -> Credentials | None:
    """Read `access:secret` or `access:secret:token`. None for anything else, such as a Bedrock API key."""
    parts = key.split(":", 2)
    return Credentials(*parts) if len(parts) > 1 and parts[0].startswith(("AKIA", "ASIA")) else None


def sign(
    url: str, content: bytes, credentials: Credentials, *, region: str, service: str, now: datetime
) -> dict[str, str]:
    """Give the headers that sign this request; `now` is in UTC. Content-Type is signed as application/json."""
    moment, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    address = urlsplit(url)
    headers = {"content-type": "application/json", "host": address.netloc, "x-amz-date": moment}
    if credentials.token:
        headers["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(headers))
    canonical = "\n".join(
        (
            # The path is encoded a second time, as every service but S3 demands.
            "POST", quote(address.path or "/", safe="/-_.~"), address.query,
            *(f"{name}:{headers[name]}" for name in sorted(headers)), "", names, hashlib.sha256(content).hexdigest(),
        )
    )  # fmt: skip
    scope = f"{day}/{region}/{service}/aws4_request"
    to_sign = "\n".join((ALGORITHM, moment, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{credentials.secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    authorization = f"{ALGORITHM} Credential={credentials.access}/{scope}, SignedHeaders={names}, Signature={signature}"
    sent = {name: headers[name] for name in headers if name.startswith("x-amz-")}
    return {**sent, "Authorization": authorization}
