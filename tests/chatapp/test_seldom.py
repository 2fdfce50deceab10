"""What is said of something that is away, and how often."""

from __future__ import annotations

import logging

import pytest

from chatapp.seldom import PAUSE_S, Seldom


def test_a_flood_is_one_warning_a_minute_with_its_number(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    seldom = Seldom(logging.getLogger("test"), lambda: now)
    for _ in range(1000):
        seldom.warning("%s is away", "Redis")
    now += PAUSE_S
    seldom.warning("%s is away", "Redis")
    now += PAUSE_S
    seldom.warning("100 %% away")
    more = "Redis is away (and 999 times more since the last time)"
    assert caplog.messages == ["Redis is away", more, "100 % away"]
