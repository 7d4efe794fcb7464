"""A replay's result as numbers for machines and tables for people. Times are seconds."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from agentjobs.apis.agentjob import Priority
from agentjobs.errors import plain
from agentjobs.scheduling.model import SECOND
from agentjobs.scheduling.resources import Bounds
from agentjobs.simulation.ranks import at_ranks
from agentjobs.simulation.tally import Part, Result

DAY = 86_400
_TEAMS_SHOWN = 15
# By resource: the words for people, of one and of several, and how many of our units are one of theirs.
_UNITS = {
    "slots": ("slot", "slots", 1),
    "cpu_millicores": ("core", "cores", 1000),
    "memory_mb": ("GiB", "GiB", 1024),
    "gpu_count": ("GPU", "GPUs", 1),
}


class Waits(NamedTuple):
    """How long runs waited, in seconds; None where none started."""

    runs: int
    p50: float | None
    p95: float | None
    p99: float | None
    longest: float | None

    @classmethod
    def of(cls, waits: array[int]) -> Waits:
        """Return the percentiles of waits in microseconds: the wait of a run that so many did not exceed."""
        count = len(waits)
        if not count:
            return cls(0, None, None, None, None)
        found = at_ranks(waits, (-(-count * part // 100) for part in (50, 95, 99, 100)))
        return cls(count, *(wait / SECOND for wait in found))


def merged(parts: Iterable[Part]) -> Part:
    """Return several parts as one."""
    whole = Part()
    for part in parts:
        whole.add(part)
    return whole


def by_class(result: Result) -> dict[Priority, Part]:
    """Return the parts of all teams by class, the most urgent first; classes without runs are left out."""
    found = {}
    for priority in Priority:
        parts = [part for (_, of), part in result.parts.items() if of is priority]
        if parts:
            found[priority] = merged(parts)
    return found


def by_team(result: Result) -> dict[str, Part]:
    """Return the parts of all classes by team, the one with most runs first."""
    teams: dict[str, list[Part]] = {}
    for (team, _), part in result.parts.items():
        teams.setdefault(team, []).append(part)
    whole = {team: merged(parts) for team, parts in teams.items()}
    return dict(sorted(whole.items(), key=lambda item: (-len(item[1].waits), item[0])))


def as_json(result: Result, trace: str, policy: str, capacity: Bounds) -> dict[str, Any]:
    """Return everything that a replay found, as JSON has it."""
    return {
        "trace": trace,
        "policy": policy,
        "capacity": capacity._asdict(),
        "spanSeconds": result.span / SECOND,
        "all": _part(merged(result.parts.values())),
        "classes": {priority.value: _part(part) for priority, part in by_class(result).items()},
        "teams": {
            team: {**_part(part), "lastEndSeconds": _end(result, team)}
            for team, part in by_team(result).items()
        },
        "jain": result.jain,
        "utilisation": dict(result.utilisation),
        "idleWhileWaiting": result.idle_while_waiting,
        "startsPastMoreUrgent": result.starts_past_urgent,
        "backfilled": result.backfilled,
        "promises": {"kept": result.promises.get("Kept", 0), "broken": broken(result.promises)},
        "leftWaitingBecause": dict(result.reasons),
    }


def broken(promises: Mapping[str, int]) -> dict[str, int]:
    """Return the promises that were not kept, by cause."""
    return {cause: count for cause, count in sorted(promises.items()) if cause != "Kept"}


def over_a_day(part: Part) -> int:
    """Return how many runs waited longer than a day."""
    return sum(wait > DAY * SECOND for wait in part.waits)


def tables(found: Mapping[str, Any]) -> RenderableType:
    """Return what `as_json` returned for the terminal."""
    return Group(_summary(found), _waits("class", found["classes"]), _waits("team", found["teams"]))


def seconds(value: float | None) -> str:
    """A time for people: `0`, `42 s`, `12 min`, `3.4 h`, `5.1 d`; "-" for none."""
    if value is None:
        return "-"
    if value < 100:
        return f"{value:.3g} s" if value else "0"
    for unit, size in (("min", 60), ("h", 3600)):
        if value < 100 * size:
            return f"{value / size:.2g} {unit}" if value < 10 * size else f"{value / size:.0f} {unit}"
    return f"{value / DAY:.1f} d"


def percent(value: float | None) -> str:
    """A part of a whole for people; "-" for none."""
    return "-" if value is None else f"{100 * value:.1f} %"


def _part(part: Part) -> dict[str, Any]:
    waits = Waits.of(part.waits)
    return {
        "runs": waits.runs,
        "p50Seconds": waits.p50,
        "p95Seconds": waits.p95,
        "p99Seconds": waits.p99,
        "longestSeconds": waits.longest,
        "withinShare": part.within_share,
        "instantWithinShare": part.instant / part.within_share if part.within_share else None,
        "overADay": over_a_day(part),
        "refused": part.refused,
        "neverFits": part.never_fits,
        "leftWaiting": part.left_waiting,
    }


def _plain(name: str) -> Text:
    """Return a name as it is: without markup, and nothing in it moves the cursor."""
    return Text(plain(name))


def _amount(name: str, top: int) -> str:
    one, several, size = _UNITS[name]
    amount = f"{top / size:,.0f}"
    return f"{amount} {one if amount == '1' else several}"


def _end(result: Result, team: str) -> float | None:
    return result.ends[team] / SECOND if team in result.ends else None


def _summary(found: Mapping[str, Any]) -> Table:
    table = Table(
        title=_plain(f"{found['trace']}: {found['policy']}"), title_justify="left", show_header=False
    )
    table.add_column()
    table.add_column(justify="right")
    whole = found["all"]
    capacity = [_amount(name, top) for name, top in found["capacity"].items() if top is not None]
    table.add_row("capacity", ", ".join(capacity) or "not limited")
    table.add_row("runs started, over", f"{whole['runs']:,}, {seconds(found['spanSeconds'])}")
    for name, part in found["utilisation"].items():
        table.add_row(f"{_UNITS[name][1]} held", percent(part))
    table.add_row("slots free while a run waited", percent(found["idleWhileWaiting"]))
    table.add_row(
        "Jain's index of shares held while waiting", "-" if found["jain"] is None else f"{found['jain']:.3f}"
    )
    table.add_row("started at once, of runs within their team's share", percent(whole["instantWithinShare"]))
    table.add_row("starts while a more urgent run waited", f"{found['startsPastMoreUrgent']:,}")
    table.add_row("started in a hole before a reservation", f"{found['backfilled']:,}")
    table.add_row("promises kept", f"{found['promises']['kept']:,}")
    for cause, count in found["promises"]["broken"].items():
        table.add_row(f"promises broken: {cause}", f"{count:,}")
    table.add_row("waited more than a day", f"{whole['overADay']:,}")
    for reason, count in found["leftWaitingBecause"].items():
        table.add_row(f"never started: {reason}", f"{count:,}")
    table.add_row("refused: too many of the team wait (429)", f"{whole['refused']:,}")
    table.add_row("refused: can never fit", f"{whole['neverFits']:,}")
    return table


def _waits(what: str, parts: Mapping[str, Mapping[str, Any]]) -> Table:
    shown = list(parts.items())[:_TEAMS_SHOWN]
    more = len(parts) - len(shown)
    caption = f"and {more} more {what}s, in the JSON file" if more else None
    table = Table(title=f"wait by {what}", title_justify="left", caption=caption, caption_justify="left")
    table.add_column(what, overflow="fold")  # teams are told apart, however long their names are
    headings = ("runs", "p50", "p95", "p99", "longest", "at once within share", "refused")
    for heading in headings:
        table.add_column(heading, justify="right")
    for name, part in shown:
        times = (seconds(part[f"{key}Seconds"]) for key in ("p50", "p95", "p99", "longest"))
        table.add_row(
            _plain(name),
            f"{part['runs']:,}",
            *times,
            percent(part["instantWithinShare"]),
            f"{part['refused']:,}",
        )
    return table
