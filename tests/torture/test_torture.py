"""A short run of seeded random schedules. `python -m tests.torture` plays any number of them."""

from __future__ import annotations

import pytest

from tests.torture.plan import plan_of
from tests.torture.run import play
from tests.torture.site import Site

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]


@pytest.mark.parametrize("seed", [744, 1046])
async def test_a_seeded_schedule_breaks_no_promise(site: Site, seed: int) -> None:
    await site.heal()
    outcome = await play(site, plan_of(seed, generations=16))
    assert outcome.broken == [], f"repeat: python -m tests.torture --seed {seed} --schedules 1 --generations 16"
