"""`agentjobs export`: the pools, teams and runs of a cluster as a trace that can be replayed.

Runs that ended take as long as they took. Of those that have not, nobody knows: the median of their team's
ended runs in the pool, else of all there, else their timeout stands in, and what has passed already is the
least. Runs that ended without having started are left out.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from agentjobs.apis import nesting, times
from agentjobs.apis.agentjob import Priority, ResourceRequirements
from agentjobs.apis.records import Metadata, Stored, Wire, lenient
from agentjobs.cli.output import standard_output
from agentjobs.cluster import paths
from agentjobs.cluster.session import Session
from agentjobs.scheduling.model import SECOND
from agentjobs.scheduling.resources import Amounts
from agentjobs.simulation.jsonl import manifest, write_run
from agentjobs.simulation.trace import TraceRun

_PAGE = 500  # objects a request
_LEVEL_IN_LIST, _LEVEL_ALONE = 5, 3  # of the fields of a spec, for `nesting.decode`
# What a replay needs; the rest is nobody's business who is given the trace.
_OF_POOLS = (
    "maxConcurrency",
    "capacity",
    "priorityWeights",
    "sharePercent",
    "headroomPercent",
    "shareWindowSeconds",
    "maxPendingPerTeam",
    "startTimeoutSeconds",
    "requireTeams",
)
_OF_TEAMS = ("teamId", "maxPending", "pools")
_DEFAULTS = ResourceRequirements()


class _Resources(Wire):
    cpu_millicores: int = _DEFAULTS.cpu_millicores
    memory_mb: int = _DEFAULTS.memory_mb
    gpu_count: int = _DEFAULTS.gpu_count
    timeout_seconds: int = _DEFAULTS.timeout_seconds


class _Spec(Wire):
    team_id: str = ""
    priority: str = "default"
    pool: str = "default"
    resources: _Resources = msgspec.field(default_factory=_Resources)


class AgentJob(Wire):
    """What is read of an AgentJob."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"{}"))
    status: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"{}"))


class _PageEnd(Wire):
    continued: str = msgspec.field(default="", name="continue")


class _Page(Wire):
    metadata: _PageEnd = msgspec.field(default_factory=_PageEnd)
    items: list[msgspec.Raw] = msgspec.field(default_factory=list)


def run() -> None:
    """Print the trace of the cluster that KUBECONFIG names.

    Raises:
        ApiError: when the cluster cannot be read.
        OutputError: when the standard output cannot be written.
    """
    found = asyncio.run(_read())
    with standard_output("utf-8") as out:  # as any reader of traces expects it
        for line in lines(*found, time.time_ns() // 1000):
            print(line, file=out)


def lines(
    pools: list[dict[str, Any]], teams: list[dict[str, Any]], jobs: list[AgentJob], now: int
) -> Iterator[str]:
    """Yield the lines of a trace: pools, teams, then runs in the order of their submission.

    Args:
        now: microseconds since the epoch.
    """
    for pool in pools:
        yield manifest("AgentPool", pool["metadata"]["name"], _pool(pool))
    for team in _in_force(teams):
        yield manifest("AgentTeam", team["metadata"]["name"], _chosen(team, _OF_TEAMS))
    runs = sorted(_runs(jobs, now), key=lambda found: (found[1].submitted, found[1].name))
    left_out = len(jobs) - len(runs)
    if left_out:
        _say(f"runs left out, because they ended without a start: {left_out:,}")
    for pool_name, found in runs:
        yield write_run(found, pool_name)


async def _read() -> tuple[list[Any], list[Any], list[AgentJob]]:
    async with Session() as session:
        return await read(session)


async def read(session: Session) -> tuple[list[Any], list[Any], list[AgentJob]]:
    """Return the pools and teams that are stored, as JSON, and the runs.

    Raises:
        ApiError: when they cannot be read.
    """
    pools = await _list(session, paths.AGENTPOOLS, Any)
    teams = await _list(session, paths.AGENTTEAMS, Any)
    return pools, teams, await _list(session, paths.AGENTJOBS, AgentJob)


async def _list(session: Session, path: str, kind: Any) -> list[Any]:
    found: list[Any] = []
    params, decoder = {"limit": str(_PAGE)}, msgspec.json.Decoder(kind)
    while True:
        # Anybody may store an object that is nested without end; it must not hide all the others.
        content = await session.request("GET", path, params=params)
        page = nesting.decode(content, msgspec.json.Decoder(_Page), _LEVEL_IN_LIST)
        found += [nesting.decode(item, decoder, _LEVEL_ALONE) for item in page.items]
        if not page.metadata.continued:
            return found
        params["continue"] = page.metadata.continued


def _pool(pool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pool's spec, with what its nodes offered last as a fixed amount."""
    spec = _chosen(pool, _OF_POOLS)
    if "nodes" in (spec.get("capacity") or {}):
        del spec["capacity"]
        offered = (pool.get("status") or {}).get("capacity") or {}
        fixed = {name: amount for name, amount in offered.items() if name != "slots"}
        if fixed:
            spec["capacity"] = {"fixed": fixed}
        else:
            name = pool["metadata"]["name"]
            _say(f"what the nodes of pool {name} offer is not known; not limited")
    return spec


def _in_force(teams: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the AgentTeams, the oldest first; of several with one id the oldest, as in the operator."""
    holders: dict[str, str] = {}
    for team in sorted(teams, key=_age):
        name = team["metadata"]["name"]
        team_id = (team.get("spec") or {}).get("teamId") or name
        if holders.setdefault(team_id, name) == name:
            yield team
        else:
            _say(f"AgentTeam {name} left out: {holders[team_id]}, which is older, has its id {team_id}")


def _age(team: dict[str, Any]) -> tuple[int, str]:
    metadata = team["metadata"]
    return times.parse(metadata.get("creationTimestamp")) or 0, metadata["name"]


def _chosen(resource: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    spec = resource.get("spec") or {}
    return {field: spec[field] for field in fields if spec.get(field) is not None}


def _runs(jobs: list[AgentJob], now: int) -> Iterator[tuple[str, TraceRun]]:
    """Yield each run with its pool's name."""
    read = [(job.metadata, lenient(job.spec, _Spec), lenient(job.status, Stored)) for job in jobs]
    by_team, by_pool = _durations(read)
    for metadata, spec, status in read:
        seconds = _seconds(status)
        if seconds is None:
            if status.terminal:
                continue
            known = by_team.get((spec.pool, spec.team_id)) or by_pool.get(spec.pool)
            seconds = max(
                round(statistics.median(known)) if known else spec.resources.timeout_seconds,
                (now - (times.parse(status.started_at) or now)) // SECOND,
            )
        yield spec.pool, _run(metadata, spec, status, seconds)


def _durations(
    read: list[tuple[Metadata, _Spec, Stored]],
) -> tuple[Mapping[tuple[str, str], list[int]], Mapping[str, list[int]]]:
    by_team: dict[tuple[str, str], list[int]] = defaultdict(list)
    by_pool: dict[str, list[int]] = defaultdict(list)
    for _, spec, status in read:
        seconds = _seconds(status)
        if seconds is not None:
            by_team[spec.pool, spec.team_id].append(seconds)
            by_pool[spec.pool].append(seconds)
    return by_team, by_pool


def _seconds(status: Stored) -> int | None:
    started, completed = times.parse(status.started_at), times.parse(status.completed_at)
    if not status.terminal or started is None or completed is None:
        return None
    return max(0, (completed - started) // SECOND)


def _run(metadata: Metadata, spec: _Spec, status: Stored, seconds: int) -> TraceRun:
    asked = spec.resources
    submitted = times.parse(status.created_at) or times.parse(metadata.creation_timestamp) or 0
    known = spec.priority in tuple(Priority)
    return TraceRun(
        f"{metadata.namespace}/{metadata.name}",
        spec.team_id,
        Priority(spec.priority) if known else Priority.DEFAULT,
        submitted,
        seconds,
        Amounts(1, asked.cpu_millicores, asked.memory_mb, asked.gpu_count),
        asked.timeout_seconds,
    )


def _say(remark: str) -> None:
    print(f"agentjobs: {remark}", file=sys.stderr)
