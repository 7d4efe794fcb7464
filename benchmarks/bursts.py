"""Bursts: seven light teams go about their work, and one to four others submit 400 critical runs at once."""

from __future__ import annotations

import random

from agentjobs.apis.agentjob import Priority
from agentjobs.scheduling.model import SECOND
from agentjobs.scheduling.resources import Amounts, Bounds
from agentjobs.simulation.trace import TraceRun

SLOTS = 16
LIGHT_TEAMS = 7
RUNS_A_BURST = 400
BURST_AT = 3600
CAPACITY = Bounds(slots=SLOTS)

_SHORTEST, _LONGEST = 900, 2700  # seconds of a run
_PAUSE = 2520  # seconds, in the mean, between two runs of a light team: all together hold 5 slots
_LIGHT_UNTIL = 300_000  # longer than four bursts take
# Of five runs of a light team.
_CLASSES = (Priority.CRITICAL, *[Priority.DEFAULT] * 3, Priority.LOW)


def light(team: str) -> bool:
    """Whether a team is one of those that do not burst."""
    return team.startswith("light")


def trace(bursts: int) -> list[TraceRun]:
    """Return the runs in the order of their submission; always the same for a number of bursts."""
    runs = [run for number in range(LIGHT_TEAMS) for run in _light(number)]
    runs += [
        _run(f"burst-{number}", each, BURST_AT, Priority.CRITICAL, _chance(f"burst {number} {each}"))
        for number in range(bursts)
        for each in range(RUNS_A_BURST)
    ]
    return sorted(runs, key=lambda run: (run.submitted, run.name))


def _light(number: int) -> list[TraceRun]:
    chance = _chance(f"light {number}")
    runs: list[TraceRun] = []
    at = chance.randrange(_PAUSE)
    while at < _LIGHT_UNTIL:
        runs.append(_run(f"light-{number}", len(runs), at, chance.choice(_CLASSES), chance))
        at += chance.randrange(2 * _PAUSE)
    return runs


def _run(team: str, number: int, at: int, priority: Priority, chance: random.Random) -> TraceRun:
    seconds = chance.randrange(_SHORTEST, _LONGEST)
    return TraceRun(f"{team}-{number:04}", team, priority, at * SECOND, seconds, Amounts(1, 1000, 2048), 3600)


def _chance(seed: str) -> random.Random:
    return random.Random(seed)  # noqa: S311 - repeatable on purpose
