"""`agentjobs simulate`: a trace, a pool, what-ifs; then tables, a JSON file, a plot."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace

from rich.console import Console
from rich.status import Status

from agentjobs import policy_loader
from agentjobs.cli.output import standard_output, write
from agentjobs.errors import AgentJobsError
from agentjobs.scheduling.model import TeamSettings
from agentjobs.scheduling.resources import Bounds
from agentjobs.scheduling.rules import counted
from agentjobs.simulation import plots, report, setup
from agentjobs.simulation.engine import simulate
from agentjobs.simulation.files import opened
from agentjobs.simulation.setup import Setup
from agentjobs.simulation.tally import Result
from agentjobs.simulation.trace import Trace, TraceRun

AS_IS = -1  # of --max-pending, where None stands for unlimited
_NAMED = 5  # other pools
_EVERY = 5000  # runs between two looks at how far it is


def run(options: argparse.Namespace) -> None:
    """Replay, print, and write what was asked for.

    Raises:
        AgentJobsError: for a trace or a policy that cannot be used, or a file that cannot be written.
    """
    make = policy_loader.load(options.policy)
    notes = Console(stderr=True)
    with notes.status("reading …") as status:
        sized = _sized(options, status)
        with _opened(options) as trace:
            pool = what_if(setup.of_trace(trace), options, sized)
            result = simulate(_counted(trace.runs, status), pool, make(), trace.pool_name)
            note, others = trace.note, trace.others
    if not result.parts:
        raise AgentJobsError(f"{options.trace.name} has no run of pool {trace.pool_name}")
    capacity = pool.settings.capacity
    found = report.as_json(result, options.trace.name, options.policy, capacity)
    with standard_output() as out:
        Console(file=out).print(report.tables(found))
    for text in _remarks(options, result, note, others, sized=sized is not None):
        notes.print(text, highlight=False, style="dim", markup=False)
    if options.json:
        write(options.json, json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    if options.plot:
        groups = {name.value: part.waits for name, part in report.by_class(result).items()}
        title = f"{options.trace.name}: {options.policy}"
        write(options.plot, plots.waits(title, groups))


def what_if(pool: Setup, options: argparse.Namespace, sized: Bounds | None) -> Setup:
    """Return the setup with what the flags change."""
    capacity = sized or pool.settings.capacity
    if options.slots is not None:
        capacity = capacity._replace(slots=options.slots)
    if options.cores is not None:
        capacity = capacity._replace(cpu_millicores=1000 * options.cores)
    if options.gpus is not None:
        capacity = capacity._replace(gpu_count=options.gpus)
    pool = pool.with_settings(capacity=capacity)
    if options.share is not None:
        pool = pool.with_settings(share_percent=options.share)
    if options.headroom is not None:
        pool = pool.with_settings(headroom_percent=options.headroom)
    for team, weight in _each(options.weights):
        pool = pool.with_team(team, weight=weight)
    for team, slots in _each(options.limit):
        pool = _limited(pool, team, slots)
    if options.max_pending != AS_IS:
        pool = replace(pool, max_pending=options.max_pending, max_pending_of={})
    return pool


def _limited(pool: Setup, team: str, slots: int) -> Setup:
    """Return the setup with another limit of a team; below what it is guaranteed there is none."""
    known = pool.settings.teams.get(team, TeamSettings())
    if slots < known.guaranteed.slots:
        raise AgentJobsError(
            f"--limit: team {team}: {slots} is below the {counted(known.guaranteed.slots, 'slots')} that the "
            "trace guarantees; raise the one or lower the other"
        )
    return pool.with_team(team, limit=known.limit._replace(slots=slots))


def _opened(options: argparse.Namespace) -> AbstractContextManager[Trace]:
    return opened(options.trace, team_column=options.team_column, pool_name=options.pool)


def _sized(options: argparse.Namespace, status: Status) -> Bounds | None:
    """Return a capacity for a trace without a pool, unless a flag says how large it is."""
    if any(value is not None for value in (options.slots, options.cores, options.gpus)):
        return None
    with _opened(options) as trace:
        return None if trace.pool else setup.sized_for(_counted(trace.runs, status))


def _counted(runs: Iterable[TraceRun], status: Status) -> Iterator[TraceRun]:
    for number, run in enumerate(runs):
        if number and not number % _EVERY:
            status.update(f"{number:,} runs …")
        yield run


def _remarks(
    options: argparse.Namespace, result: Result, note: str, others: Counter[str], *, sized: bool
) -> Iterator[str]:
    if sized:
        yield f"pool: sized so that the trace loads it to {setup.LOAD_PERCENT} %; see --slots"
    if note:
        yield f"trace: {note}"
    if others:
        names = ", ".join(map(repr, sorted(others)[:_NAMED])) + (" …" if len(others) > _NAMED else "")
        yield f"trace: runs of other pools, left out: {others.total():,}, of {names}"
    teams = {team for team, _ in result.parts}
    for team, _ in _each([*options.weights, *options.limit]):
        if team not in teams:
            yield f"trace: no run of team {team}, which a flag names"


def _each(flags: Iterable[dict[str, int]]) -> Iterator[tuple[str, int]]:
    for flag in flags:
        yield from flag.items()
