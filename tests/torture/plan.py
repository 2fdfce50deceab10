"""A schedule: from a seed, who asks what and reads how, and which faults strike when. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.torture.faults import draw
from tests.torture.links import TRANSPORTS
from tests.torture.page import Habit, Miss
from tests.torture.scripts import COUNTING, FAILING, QUEUEING

# Conversations begin within this, and faults strike until all that was asked first should have ended.
_BEGIN_WITHIN_S = 4.0
_STRIKE_WITHIN_S = 10.0
_MOST_PANES = 3


@dataclass(frozen=True, slots=True)
class Talk:
    """
    One conversation: its turns, each a list of models; who reads it; what is done to its first answers, and when.

    Seconds count from the asking. `again` names panes, each with the answer that is asked for once the first
    has ended: a continuation where there is something to continue, else another answer.
    """

    at_s: float
    turns: tuple[tuple[str, ...], ...]
    habits: tuple[Habit, ...]
    stops: tuple[tuple[int, float], ...] = ()  # (pane, seconds)
    stops_all_s: float | None = None
    deletes_s: float | None = None
    again: tuple[tuple[int, str], ...] = ()  # (pane, "retry" or "continue")


@dataclass(frozen=True, slots=True)
class Blow:
    at_s: float
    fault: str
    seed: int


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    talks: tuple[Talk, ...]
    blows: tuple[Blow, ...]


def plan_of(seed: int, generations: int) -> Plan:
    """Draw a plan in which at least so many generations are asked for and kept."""
    rng = Random(seed)
    talks: list[Talk] = []
    while sum(map(_kept, talks)) < generations:
        talks.append(_talk(rng))
    blows = [Blow(rng.uniform(0.5, _STRIKE_WITHIN_S), draw(rng), rng.getrandbits(32)) for _ in range(rng.randint(3, 7))]
    return Plan(seed, tuple(talks), tuple(sorted(blows, key=lambda blow: blow.at_s)))


def _kept(talk: Talk) -> int:
    return 0 if talk.deletes_s is not None else sum(map(len, talk.turns)) + len(talk.again)


def _talk(rng: Random) -> Talk:
    turns = tuple(_models(rng) for _ in range(2 if rng.random() < 0.2 else 1))
    habits = tuple(_habit(rng) for _ in range(rng.choice((1, 1, 2, 3))))
    at_s, panes = rng.uniform(0, _BEGIN_WITHIN_S), range(len(turns[0]))
    fate = rng.random()
    if fate < 0.08:
        return Talk(at_s, turns[:1], habits, deletes_s=rng.uniform(0, 8))
    if fate < 0.16:
        return Talk(at_s, turns, habits, stops_all_s=rng.uniform(0, 8))
    # Some before the model is called, some in mid-stream, some after the end.
    stops = tuple((pane, rng.choice((0.0, rng.uniform(0, 9)))) for pane in panes if rng.random() < 0.25)
    again = tuple((pane, rng.choice(("retry", "continue"))) for pane in panes if rng.random() < 0.12)
    return Talk(at_s, turns, habits, stops, again=again)


def _models(rng: Random) -> tuple[str, ...]:
    """Draw the models of a turn, each once, so that the upstream's account tells the panes apart."""
    chosen = rng.sample(COUNTING, rng.randint(1, _MOST_PANES))
    # Often, since only several of them at once have to wait.
    if rng.random() < 0.6:
        chosen[0] = rng.choice(QUEUEING)
    if rng.random() < 0.2:
        chosen[-1] = rng.choice(FAILING)
    return tuple(script.name for script in chosen)


def _habit(rng: Random) -> Habit:
    transport = rng.choice(sorted(TRANSPORTS))
    match rng.choice(("steady", "steady", "slow", "restless", "late", "unlucky")):
        case "slow":
            return Habit(transport, pause_s=rng.uniform(0.1, 0.6))
        case "restless":
            return Habit(transport, leaves_after_s=rng.uniform(0.1, 1.0))
        case "late":
            return Habit(transport, joins_after_s=rng.uniform(1, 8))
        case "unlucky":
            return Habit(transport, misses=Miss.CONNECTION)
        case _:
            return Habit(transport)
