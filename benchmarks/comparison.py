"""The same runs by each policy, side by side: tables, and who loses."""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from agentjobs.apis.agentjob import Priority
from agentjobs.scheduling.fairshare import FairShare
from agentjobs.scheduling.model import SECOND, PoolSettings
from agentjobs.scheduling.policies import Fifo, Policy, PriorityOnly
from agentjobs.scheduling.resources import Bounds
from agentjobs.simulation.engine import simulate
from agentjobs.simulation.report import Waits, broken, merged, over_a_day, percent, seconds
from agentjobs.simulation.setup import Setup
from agentjobs.simulation.tally import Part, Result
from agentjobs.simulation.trace import TraceRun

POLICIES: tuple[Callable[[], Policy], ...] = (FairShare, Fifo, PriorityOnly)
OURS, *OTHERS = NAMES = ("fair-share", "fifo", "priority-only")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The same runs by each policy.

    Attributes:
        group: names the group of teams that a team is in.
    """

    results: Mapping[str, Result]
    group: Callable[[str], str]

    def groups(self) -> list[tuple[str, Priority]]:
        """Return the groups of teams and classes that have runs, in order."""
        keys = {(self.group(team), priority) for team, priority in self.results[OURS].parts}
        return sorted(keys, key=lambda key: (key[0], list(Priority).index(key[1])))

    def part(self, policy: str, group: str, priority: Priority | None = None) -> Part:
        """Return what a policy did for a group's runs, of one class or of all."""
        return merged(
            part
            for (team, of), part in self.results[policy].parts.items()
            if self.group(team) == group and priority in (None, of)
        )


def compare(
    runs: Iterable[TraceRun], capacity: Bounds, group: Callable[[str], str], most: int | None = None
) -> Comparison:
    """Replay the same runs by each policy."""
    listed = list(runs)
    setup = Setup(PoolSettings(capacity=capacity), max_pending=most)
    return Comparison({make().name: simulate(listed, setup, make()) for make in POLICIES}, group)


def overview(found: Comparison) -> list[str]:
    """Return the table of what is one number a policy."""
    lines = [
        "| policy | Jain | at once within share | slots free while runs wait | started past a more urgent "
        "run | waited over a day | promises kept | broken |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for policy in NAMES:
        result = found.results[policy]
        whole = merged(result.parts.values())
        causes = ", ".join(f"{cause} {count:,}" for cause, count in broken(result.promises).items())
        cells = (
            policy,
            jain(result),
            percent(whole.instant / whole.within_share),
            percent(result.idle_while_waiting),
            percent(result.starts_past_urgent / len(whole.waits)),
            f"{over_a_day(whole):,}",
            f"{result.promises['Kept']:,}" if "Kept" in result.promises else "none made",
            causes,
        )
        lines.append(row(cells))
    return lines


def wait_table(found: Comparison) -> list[str]:
    """Return the table of waits: median, 95th and 99th percentile by group, class and policy."""
    lines = [
        row(("teams", "class", "runs", *(f"{policy}: p50 / p95 / p99" for policy in NAMES))),
        "|---|---|---:|---:|---:|---:|",
    ]
    for group, priority in found.groups():
        waits = [Waits.of(found.part(policy, group, priority).waits) for policy in NAMES]
        cells = [" / ".join(map(seconds, (of.p50, of.p95, of.p99))) for of in waits]
        lines.append(row((group, priority.value, f"{waits[0].runs:,}", *cells)))
    return lines


def losers(found: Comparison) -> list[str]:
    """Return who waits longer under fair-share than under another policy, in words."""
    lines = ["**Who loses** under fair-share:", ""]
    for other in OTHERS:
        worse = [
            f"{group} {priority.value} (p99 {seconds(then)} → {seconds(now)})"
            for group, priority in found.groups()
            for now, then in [
                (
                    Waits.of(found.part("fair-share", group, priority).waits).p99 or 0,
                    Waits.of(found.part(other, group, priority).waits).p99 or 0,
                )
            ]
            if now > 1.1 * then and now > then + 60
        ]
        lines.append(f"- against {other}, by class: {'; '.join(worse) or 'none by more than a tenth'};")
        lines.append(f"- against {other}, by team: {_teams(found, other)}")
    return lines


def _teams(found: Comparison, other: str) -> str:
    now, then = (_means(found.results[policy]) for policy in ("fair-share", other))
    change = {team: now[team] - then[team] for team in now.keys() & then.keys()}
    longer = sum(difference > 60 for difference in change.values())
    shorter = sum(difference < -60 for difference in change.values())
    most = max(sorted(change), key=lambda team: change[team])
    return (
        f"{longer} of {len(change)} teams wait longer in the mean, by more than a minute, {shorter} less "
        f"long; team {most} ({found.group(most)}) loses most: {seconds(then[most])} → {seconds(now[most])}."
    )


def _means(result: Result) -> dict[str, float]:
    """Return the mean wait of each team, in seconds."""
    waits: dict[str, array[int]] = {}
    for (team, _), part in result.parts.items():
        waits.setdefault(team, array("q")).extend(part.waits)
    return {team: statistics.fmean(found) / SECOND for team, found in waits.items() if found}


def jain(result: Result) -> str:
    """Return Jain's index as text."""
    return "-" if result.jain is None else f"{result.jain:.2f}"


def row(cells: Iterable[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"
