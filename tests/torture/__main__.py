"""
Seeded random fault schedules, by hand.

    python -m tests.torture --seed 1 --schedules 20
    python -m tests.torture --seed 1 --minutes 30
    python -m tests.torture --seed 17 --schedules 1      repeats schedule 17

Schedule n of a run has the seed `seed + n`. Prints one line for each, then a summary; ends with exit
code 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter

from tests.torture.plan import plan_of
from tests.torture.run import Outcome, play
from tests.torture.site import running_site

# A site that a schedule has broken may break the next one too; a new one is started after so many.
_SCHEDULES_A_SITE = 25


def main() -> None:
    arguments = _parse()
    outcomes = asyncio.run(_run(arguments))
    _summarise(outcomes)
    sys.exit(any(outcome.broken for outcome in outcomes))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--schedules", type=int, default=10)
    parser.add_argument("--minutes", type=float, help="instead of a number of schedules")
    parser.add_argument("--generations", type=int, default=20, help="in each schedule, at least")
    return parser.parse_args()


async def _run(arguments: argparse.Namespace) -> list[Outcome]:
    outcomes: list[Outcome] = []
    ends_at = time.monotonic() + (arguments.minutes or 0) * 60
    while _goes_on(arguments, len(outcomes), ends_at):
        async with running_site() as site:
            for _ in range(_SCHEDULES_A_SITE):
                if not _goes_on(arguments, len(outcomes), ends_at):
                    break
                plan = plan_of(arguments.seed + len(outcomes), arguments.generations)
                outcome = await play(site, plan)
                outcomes.append(outcome)
                _tell(outcome, arguments.generations)
                if outcome.broken:
                    break
    return outcomes


def _goes_on(arguments: argparse.Namespace, played: int, ends_at: float) -> bool:
    return time.monotonic() < ends_at if arguments.minutes else played < arguments.schedules


def _tell(outcome: Outcome, generations: int) -> None:
    states = ", ".join(f"{count} {state}" for state, count in sorted(outcome.states.items()))
    struck = ", ".join(f"{name} ({outcome.caught[name]})" for name in outcome.struck)
    _say(
        f"seed {outcome.seed}: {states}; settled in {outcome.settled_s:.1f} s, "
        f"each worker drives after {outcome.consumed_s:.1f} s; caught by {struck or 'nothing'}"
    )
    for line in outcome.broken:
        _say(f"    BROKEN  {line}")
    if outcome.broken:
        _say(f"    repeat: python -m tests.torture --seed {outcome.seed} --schedules 1 --generations {generations}")


def _summarise(outcomes: list[Outcome]) -> None:
    struck, missed, caught, states, did = (
        sum((getattr(outcome, name) for outcome in outcomes), Counter[str]())
        for name in ("struck", "missed", "caught", "states", "did")
    )
    seeds = [outcome.seed for outcome in outcomes if outcome.broken]
    _say(f"\n{len(outcomes)} schedules, {sum(o.generations for o in outcomes)} generations: {dict(states)}")
    _say(
        f"{sum(o.pages for o in outcomes)} pages, {sum(o.connections for o in outcomes)} connections, "
        f"{sum(o.syncs for o in outcomes)} syncs, {sum(o.samples for o in outcomes)} snapshots taken in between, "
        f"{sum(o.refusals for o in outcomes)} requests refused or unanswered"
    )
    _say(f"people did: {dict(did)}")
    _say(f"slowest to settle after the faults: {max((o.settled_s for o in outcomes), default=0):.1f} s")
    _say(f"slowest until each worker drove: {max((o.consumed_s for o in outcomes), default=0):.1f} s")
    _say("faults that caught answers as they landed, how many answers, and how many faults caught none:")
    for name in sorted(struck | missed):
        _say(f"    {name:28} {struck[name]:5} {caught[name]:6} ({missed[name]})")
    _say(f"broken promises: {sum(len(o.broken) for o in outcomes)}" + (f", in the seeds {seeds}" if seeds else ""))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
