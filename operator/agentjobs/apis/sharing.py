"""From what an AgentPool, its AgentTeams and AgentJobs say to what the policy takes."""

from __future__ import annotations

from collections.abc import Mapping

from agentjobs.apis.agentjob import Priority, ResourceRequirements
from agentjobs.apis.agentpool import AgentPoolSpec
from agentjobs.apis.agentteam import AgentTeamSpec, TeamPool
from agentjobs.apis.amounts import Amounts as Named
from agentjobs.scheduling.model import PoolSettings, Run, TeamSettings
from agentjobs.scheduling.resources import NO_BOUNDS, Amounts, Bounds


def pool_settings(
    name: str,
    spec: AgentPoolSpec,
    teams: Mapping[str, AgentTeamSpec],
    nodes: Mapping[str, Amounts] | None = None,
) -> PoolSettings:
    """Return what a pool and the teams, by team id, say of it.

    Args:
        nodes: what each of its nodes offers; None when it is not bound to nodes.
    """
    fixed = spec.capacity.fixed if spec.capacity else None
    capacity = Bounds(slots=spec.max_concurrency)
    if fixed is not None:
        capacity = Bounds(spec.max_concurrency, fixed.cpu_millicores, fixed.memory_mb, fixed.gpu_count)
    return PoolSettings(
        capacity=capacity,
        nodes=nodes,
        share_percent=spec.share_percent,
        headroom_percent=spec.headroom_percent,
        share_window_seconds=spec.share_window_seconds,
        start_timeout_seconds=spec.start_timeout_seconds,
        on_hold=spec.hold,
        teams={team: _team(said.pools[name]) for team, said in teams.items() if name in said.pools},
        admitted=frozenset(teams) if spec.require_teams else None,
    )


def policy_run(
    *,
    uid: str,
    namespace: str,
    team: str,
    priority: str,
    asked: ResourceRequirements,
    pool: AgentPoolSpec | None,
    created: int,
    version: int = 0,
    name: str = "",
) -> Run:
    """Return a run as the policy takes it.

    Args:
        pool: None where there is no such AgentPool: its classes have no weights then.
        created, version: its place in its team's line; see `scheduling.model.Run`.
    """
    return Run(
        uid=uid,
        namespace=namespace,
        team=team,
        weight=getattr(pool.priority_weights, priority, 0) if pool is not None else 0,
        critical=priority == Priority.CRITICAL,
        created=created,
        version=version,
        request=Amounts(1, asked.cpu_millicores, asked.memory_mb, asked.gpu_count),
        timeout_seconds=asked.timeout_seconds,
        name=name,
    )


def _team(said: TeamPool) -> TeamSettings:
    owed = said.guaranteed or Named()
    return TeamSettings(
        weight=said.weight,
        guaranteed=Amounts(
            owed.slots or 0, owed.cpu_millicores or 0, owed.memory_mb or 0, owed.gpu_count or 0
        ),
        limit=_bounds(said.limit),
        critical_limit=_bounds(said.critical_limit),
    )


def _bounds(said: Named | None) -> Bounds:
    if said is None:
        return NO_BOUNDS
    return Bounds(said.slots, said.cpu_millicores, said.memory_mb, said.gpu_count)
