"""The pool that a trace is replayed in: as the trace has it, or sized for it; then the what-ifs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from agentjobs.apis.agentjob import Priority
from agentjobs.apis.agentpool import AgentPoolSpec, PriorityWeights
from agentjobs.apis.sharing import pool_settings
from agentjobs.scheduling.model import SECOND, PoolSettings, TeamSettings
from agentjobs.scheduling.resources import Bounds
from agentjobs.simulation.trace import Trace, TraceRun

LOAD_PERCENT = 90  # of a pool that is sized for a trace


@dataclass(frozen=True, slots=True)
class Setup:
    """A pool, as far as the simulation goes.

    Attributes:
        weights: of the priority classes; the lowest goes first.
        max_pending: how many runs of a team may wait; None: any number.
        max_pending_of: the same for teams that have a number of their own.
    """

    settings: PoolSettings
    weights: Mapping[Priority, int] = field(default_factory=lambda: class_weights(PriorityWeights()))
    max_pending: int | None = None
    max_pending_of: Mapping[str, int] = field(default_factory=dict)

    def with_settings(self, **changes: object) -> Setup:
        """Return the same setup with some of the pool's settings changed."""
        return replace(self, settings=replace(self.settings, **changes))  # type: ignore[arg-type]

    def with_team(self, team: str, **changes: object) -> Setup:
        """Return the same setup with some of a team's settings changed."""
        teams = dict(self.settings.teams)
        teams[team] = replace(teams.get(team, TeamSettings()), **changes)  # type: ignore[arg-type]
        return self.with_settings(teams=teams)


def of_trace(trace: Trace) -> Setup:
    """Return the setup that a trace names; the defaults of an AgentPool where it names none."""
    spec = trace.pool or AgentPoolSpec(require_teams=False)
    return Setup(
        pool_settings(trace.pool_name, spec, trace.teams),
        class_weights(spec.priority_weights),
        spec.max_pending_per_team,
        {team: said.max_pending for team, said in trace.teams.items() if said.max_pending is not None},
    )


def class_weights(said: PriorityWeights) -> dict[Priority, int]:
    """Return the weights by class."""
    return {priority: getattr(said, priority.value) for priority in Priority}


def sized_for(runs: Iterable[TraceRun], load_percent: int = LOAD_PERCENT) -> Bounds:
    """Return the slots, CPU and GPUs with which the runs' mean demand is a given part of what there is.

    The mean is taken from the first submission to the last; nothing is smaller than the largest run. What
    no run uses is not limited, and memory never is.
    """
    work = [0, 0, 0, 0]
    most = [0, 0, 0, 0]
    first = last = None
    for run in runs:
        first = run.submitted if first is None else first
        last = run.submitted
        seconds = min(run.seconds, run.timeout_seconds)
        for index, asked in enumerate(run.request):
            work[index] += asked * seconds
            most[index] = max(most[index], asked)
    span = max(1, ((last or 0) - (first or 0)) // SECOND)
    slots, cpu, _, gpus = (
        max(-(-done * 100 // (span * load_percent)), least) or None
        for done, least in zip(work, most, strict=True)
    )
    return Bounds(slots, cpu, None, gpus)
