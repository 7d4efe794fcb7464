"""Our own trace: one JSON object a line. AgentPools and AgentTeams as they are in the cluster, then the runs.

A run has `run` (its name), `team`, `submitted` (an RFC 3339 time, or seconds from an origin of one's own)
and `runSeconds`; and, by default as for an AgentJob, `priority`, `pool`, `cpuMillicores`, `memoryMb`,
`gpuCount` and `timeoutSeconds`. Runs are in the order of their submission.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any, TextIO, TypeVar

import msgspec

from agentjobs.apis import times
from agentjobs.apis.agentjob import Priority, ResourceRequirements
from agentjobs.apis.agentpool import AgentPool
from agentjobs.apis.agentteam import AgentTeam
from agentjobs.apis.names import API_VERSION
from agentjobs.apis.validation import validate
from agentjobs.errors import TraceError
from agentjobs.scheduling.model import SECOND
from agentjobs.scheduling.resources import Amounts
from agentjobs.simulation.trace import MOST, Row, Trace, TraceRun, clean, in_order

_Resource = TypeVar("_Resource", AgentPool, AgentTeam)

_LINE_LIMIT = 1_000_000  # characters; an AgentTeam with many members is long
_DEFAULTS = ResourceRequirements()
_NODES = (
    "pool {} has what its nodes offer, which the trace does not say; only maxConcurrency, --slots, --cores "
    "and --gpus limit it"
)
_COLUMNS = frozenset(
    {
        "run",
        "team",
        "submitted",
        "runSeconds",
        "priority",
        "pool",
        "cpuMillicores",
        "memoryMb",
        "gpuCount",
        "timeoutSeconds",
    }
)


def read_jsonl(lines: TextIO, file: str, pool_name: str | None) -> Trace:
    """Return the trace of one pool; what stands before the first run is read now.

    Args:
        pool_name: which pool; None where the trace has only one.

    Raises:
        TraceError: now or later, for a line that cannot be read.
    """
    pools: dict[str, AgentPool] = {}
    teams: dict[str, AgentTeam] = {}
    rows = _rows(lines, file)
    first: list[Row] = []
    for row in rows:
        if "kind" not in row.values:
            first = [row]
            break
        resource = _resource(row)
        if isinstance(resource, AgentPool):
            _put(pools, resource.metadata.name, resource, row)
        else:
            _put(teams, resource.spec.team_id or resource.metadata.name, resource, row)
    name = pool_name or next(iter(pools), "default")
    if (pools and name not in pools) or (pool_name is None and len(pools) > 1):
        raise TraceError(
            file,
            "is not in the trace" if pool_name else "has more than one pool",
            f"choose one with --pool: {', '.join(sorted(pools))}",
            value=pool_name,
        )
    pool = pools[name].spec if name in pools else None
    others = Counter[str]()
    return Trace(
        in_order(_runs(chain(first, rows), name, others), "submitted"),
        name,
        pool,
        {team: resource.spec for team, resource in teams.items()},
        _NODES.format(name) if pool and pool.capacity and pool.capacity.nodes is not None else "",
        others,
    )


def write_run(run: TraceRun, pool: str) -> str:
    """Return the line of a run."""
    fields = {
        "run": run.name,
        "team": run.team,
        "pool": pool,
        "priority": run.priority.value,
        "submitted": times.text(run.submitted),
        "runSeconds": run.seconds,
        "cpuMillicores": run.request.cpu_millicores,
        "memoryMb": run.request.memory_mb,
        "gpuCount": run.request.gpu_count,
        "timeoutSeconds": run.timeout_seconds,
    }
    return msgspec.json.encode(fields).decode()


def _rows(lines: TextIO, file: str) -> Iterator[Row]:
    for number, text in enumerate(clean(lines, file, _LINE_LIMIT), start=1):
        if text.isspace():
            continue
        try:
            values = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise TraceError(file, f"is no JSON: {error}", "correct the line", line=number) from None
        if not isinstance(values, dict):
            raise TraceError(file, "is no JSON object", "write one object a line", line=number)
        _no_key_twice(text, values, file, number)
        yield Row(file, number, values)


def _no_key_twice(text: str, values: Mapping[str, object], file: str, line: int) -> None:
    """Refuse a line in which a key is there twice: of such, JSON has the last one count in silence."""
    texts = len(values) + [*map(type, values.values())].count(str)
    if text.count('"') == 2 * texts:
        return  # every quote belongs to a key or a text that was read: no second look, which takes long

    def look(pairs: list[tuple[str, object]]) -> None:
        for key, count in Counter(key for key, _ in pairs).items():
            if count > 1:
                raise TraceError(
                    file, f"is there {count} times", "keep one", line=line, column=f"column {key}"
                )

    with suppress(RecursionError):  # nested deeper than anything of ours: refused for what it is
        json.loads(text, object_pairs_hook=look)


def _resource(row: Row) -> AgentPool | AgentTeam:
    kind = row.values["kind"]
    if kind not in (AgentPool.__name__, AgentTeam.__name__):
        raise row.error("kind", "is neither AgentPool nor AgentTeam", "leave the line out")
    faults = validate(row.values)
    if faults:
        first = faults[0]
        rule = f"{first.path}: {first.value} {first.problem}"
        raise TraceError(row.file, rule, first.use, line=row.line, column=str(kind))
    model = AgentPool if kind == AgentPool.__name__ else AgentTeam
    return model.model_validate({key: value for key, value in row.values.items() if key != "status"})


def _put(known: dict[str, _Resource], name: str, resource: _Resource, row: Row) -> None:
    """Add a pool by its name, or a team by its id."""
    if name in known:
        raise row.error("kind", f"stands for {name!r}, which is above already", "leave one of the two out")
    known[name] = resource


def _runs(rows: Iterable[Row], pool_name: str, others: Counter[str]) -> Iterator[tuple[Row, TraceRun]]:
    """Yield the runs of a pool; count those of others."""
    for row in rows:
        if "kind" in row.values:
            raise row.error("kind", "stands below a run", "put pools and teams first")
        pool = row.text("pool", default="default")
        if pool == pool_name:
            yield row, _run(row)
        else:
            others[pool] += 1


def _run(row: Row) -> TraceRun:
    unknown = row.values.keys() - _COLUMNS
    if unknown:
        way_out = f"there are {', '.join(sorted(_COLUMNS))}"
        raise row.error(min(unknown), "is in a column that is not known", way_out)
    return TraceRun(
        row.text("run"),
        row.text("team"),
        row.priority("priority") if "priority" in row.values else Priority.DEFAULT,
        _submitted(row),
        row.whole("runSeconds"),
        Amounts(
            1,
            row.whole("cpuMillicores", default=_DEFAULTS.cpu_millicores),
            row.whole("memoryMb", default=_DEFAULTS.memory_mb),
            row.whole("gpuCount", default=_DEFAULTS.gpu_count),
        ),
        row.whole("timeoutSeconds", least=1, default=_DEFAULTS.timeout_seconds),
    )


def _submitted(row: Row) -> int:
    value = row.values.get("submitted")
    if isinstance(value, str) and (moment := times.parse(value)) is not None and moment >= 0:
        return moment
    # A comparison with a number that is none is false: NaN is refused as well.
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 10 * MOST:
        return round(value * SECOND)
    raise row.error(
        "submitted",
        "is neither an RFC 3339 time nor a number of seconds of 0 or more",
        "correct the line",
    )


def manifest(kind: str, name: str, spec: Mapping[str, Any]) -> str:
    """Return the line of an AgentPool or AgentTeam."""
    fields = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
    return msgspec.json.encode(fields).decode()
