from __future__ import annotations

from datetime import UTC, datetime

import pytest

from streaming.upstream.sigv4 import Credentials, parse_credentials, sign

HOST = "https://bedrock-runtime.us-east-1.amazonaws.com"
MODEL = "us.amazon.nova-micro-v1%3A0"


@pytest.mark.parametrize(
    ("token", "signature"),
    # What botocore gives for the same request at the same moment.
    [
        ("", "2bdbdd9d1aea57ab08aa61e4a60db928c1e6c6faf51da4e2da42af342910df0f"),
        ("TOKEN/abc==", "c29a7cec8bbb78885a4134e79a0368080226c412f92c63e13ecd67668a7011ea"),
    ],
)
def test_a_request_is_signed_as_botocore_signs_it(token: str, signature: str) -> None:
    headers = sign(
        f"{HOST}/model/{MODEL}/converse-stream", '{"a":"ä"}'.encode(), Credentials("AKIDEXAMPLE", "SECRET", token),
        region="us-east-1", service="bedrock", now=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    )  # fmt: skip
    assert headers["Authorization"].endswith(signature)


@pytest.mark.parametrize(
    ("key", "credentials"),
    [
        ("AKIA1:secret", Credentials("AKIA1", "secret")),
        ("ASIA1:secret:to:ken", Credentials("ASIA1", "secret", "to:ken")),
        ("ABSKQmVkcm9jazpr", None),
        ("some:thing", None),
    ],
)
def test_access_keys_are_told_from_api_keys(key: str, credentials: Credentials | None) -> None:
    assert parse_credentials(key) == credentials
