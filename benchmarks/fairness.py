"""`python -m benchmarks.fairness`: write docs/fairness.md, its plots with it, from simulations alone.

Every number of the page is computed here, those in sentences too: where the policy changes, so does the page.
"""

from __future__ import annotations

import statistics
import sys
import textwrap
from array import array
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path

from agentjobs.apis.agentjob import Priority
from agentjobs.scheduling.model import SECOND
from agentjobs.scheduling.resources import Bounds
from agentjobs.simulation import plots
from agentjobs.simulation.files import opened
from agentjobs.simulation.report import Waits, merged, percent, seconds
from agentjobs.simulation.setup import sized_for
from agentjobs.simulation.tally import Result
from agentjobs.simulation.trace import TraceRun
from benchmarks import bursts
from benchmarks.comparison import NAMES, OURS, Comparison, compare, jain, losers, overview, row, wait_table

DOCS = Path(__file__).parents[1] / "docs"
DATA = Path(__file__).parent / "data"
LOADS = (90, 120)  # percent
HEAVY_TEAMS = 3
BURSTS = (1, 2, 3, 4)
PHILLY_SKIPPED = 1000  # they are spread over seven weeks, all others over ten days
BACKPRESSURE = 50  # waiting runs of a team: the default of an AgentPool


# -- bursts ------------------------------------------------------------------------------------------


def burst(count: int) -> Comparison:
    """Replay some bursts among seven light teams."""
    return compare(
        bursts.trace(count), bursts.CAPACITY, lambda team: "light" if bursts.light(team) else "burst"
    )


def burst_rows(count: int, found: Comparison) -> list[str]:
    """Return the lines of the table for a number of bursts."""
    rows = []
    for policy in NAMES:
        result = found.results[policy]
        critical = Waits.of(found.part(policy, "light", Priority.CRITICAL).waits)
        default = Waits.of(found.part(policy, "light", Priority.DEFAULT).waits)
        cells = (
            str(count),
            policy,
            seconds(critical.p99),
            seconds(default.p50),
            seconds(default.p99),
            seconds(_burst_end(result)),
            percent(result.idle_while_waiting),
            percent(merged([found.part(policy, "light")]).instant / found.part(policy, "light").within_share),
            jain(result),
        )
        rows.append(row(cells))
    return rows


def _burst_end(result: Result) -> float:
    """Return how long after its submission the last run of a burst ended, in the mean over the bursts."""
    ends = [end / SECOND - bursts.BURST_AT for team, end in result.ends.items() if not bursts.light(team)]
    return statistics.mean(ends)


def burst_section() -> list[str]:
    """Return the section about bursts; the plot is written with it."""
    found = {count: burst(count) for count in BURSTS}
    groups = {policy: found[2].part(policy, "light", Priority.DEFAULT).waits for policy in NAMES}
    title = "Default runs of the light teams while two teams burst"
    _plot("bursts", title, groups)
    return [
        "## Bursts",
        "",
        _prose(
            f"{bursts.SLOTS} slots, nothing else limited. {bursts.LIGHT_TEAMS} light teams submit a run of "
            "15 to 45 minutes every 42 minutes each, in the mean: one in five critical, three default, one "
            "low; together they hold 5 slots. An hour later one to four other teams submit "
            f"{bursts.RUNS_A_BURST} critical runs each, at once."
        ),
        "",
        "| bursts | policy | light, critical p99 | light, default p50 | light, default p99 | a burst takes | "
        "slots free while runs wait | light: at once within share | Jain |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|",
        *(line for count in BURSTS for line in burst_rows(count, found[count])),
        "",
        f"![{title}](fairness/bursts.svg)",
        "",
        *burst_losers(found),
        "",
    ]


def burst_losers(found: Mapping[int, Comparison]) -> list[str]:
    """Return who loses in the bursts, in words."""
    first = found[1].results
    fair, fifo = (_burst_end(first[policy]) for policy in (OURS, "fifo"))
    lines = [
        _prose(
            f"**Who loses.** The team that bursts alone: its last run ends after {seconds(fair)}, first "
            f"come, first served after {seconds(fifo)} ({percent(fair / fifo - 1)} longer). Its critical "
            "runs wait behind others' default ones once it is beyond its share, and what is kept free for "
            f"others ({percent(first[OURS].idle_while_waiting)} of the pool) is idle meanwhile. So does each "
            "of several that burst."
        ),
    ]
    for count, comparison in found.items():
        waits = Waits.of(comparison.part(OURS, "light", Priority.DEFAULT).waits)
        if waits.p50:
            text = (
                f"With {count} bursts, what their shares leave is less than the light teams use, and "
                f"critical runs go first: the light teams' default runs wait {seconds(waits.p50)} in the "
                "median."
            )
            lines += ["", _prose(text)]
    return lines


# -- traces ------------------------------------------------------------------------------------------


def trace_section(name: str, title: str, skipped: int = 0) -> list[str]:
    """Return the section about a public trace; its plots are written with it.

    Args:
        skipped: how many runs at its beginning are left out.
    """
    with opened(DATA / f"{name}-15k.csv.gz") as trace:
        runs = list(islice(trace.runs, skipped, None))
    heavy = heaviest(runs)
    span = seconds((runs[-1].submitted - runs[0].submitted) / SECOND)
    lines = [f"## {title}", "", f"{len(runs):,} runs of {len({run.team for run in runs})} teams in {span}."]
    if skipped:
        before = seconds((runs[0].submitted) / SECOND)
        lines += [f"The {skipped:,} runs before them, over {before}, are left out."]
    lines.append("")
    for load in LOADS:
        capacity = sized_for(runs, load)
        found = compare(runs, capacity, _grouping(heavy))
        plot = f"{name}-{load}"
        words = f"{name.title()} at a load of {load} %: wait of all but the three heavy teams"
        _plot(plot, words, {policy: found.part(policy, "others").waits for policy in NAMES})
        lines += [
            f"### Load {load} %",
            "",
            f"{_capacity(capacity)}.",
            "",
            *overview(found),
            "",
            *wait_table(found),
            "",
            f"![{words}](fairness/{plot}.svg)",
            "",
            *losers(found),
            "",
        ]
    limited = compare(runs, capacity, _grouping(heavy), BACKPRESSURE)
    refused = ", ".join(
        f"{merged(limited.results[policy].parts.values()).refused:,} by {policy}" for policy in NAMES
    )
    text = (
        f"With the default limit of {BACKPRESSURE} waiting runs a team, so many of {len(runs):,} submissions "
        f"are refused (429) at this load: {refused}. Above, nothing is refused."
    )
    lines += [_prose(text), ""]
    return lines


def heaviest(runs: Iterable[TraceRun]) -> frozenset[str]:
    """Return the teams with most work, in GPU-seconds, or slot-seconds where a run has no GPU."""
    work: dict[str, int] = {}
    for run in runs:
        work[run.team] = work.get(run.team, 0) + max(1, run.request.gpu_count) * run.seconds
    return frozenset(sorted(work, key=lambda team: (-work[team], team))[:HEAVY_TEAMS])


def _grouping(heavy: frozenset[str]) -> Callable[[str], str]:
    return lambda team: "heavy" if team in heavy else "others"


# -- the page ----------------------------------------------------------------------------------------

INTRODUCTION = f"""\
# Fairness

Written by `make fairness`; do not edit. Every figure is from the production policy in virtual time
(`agentjobs simulate` does the same with your own trace), beside the two it is compared with: `fifo` (the
oldest first) and `priority-only` (the most urgent class first, then the oldest). In both the first run that
does not fit blocks the rest. Share 25 %, headroom 10 %, all weights 1, no guarantees, no limits; nothing is
refused unless said.

- *Wait*: from the submission to the decision. Runs start at once when decided, and do not fail.
- *At once within share*: of the runs that would start at once if their team had its share for itself, the
  part that did start within a second.
- *Jain*: Jain's index over the teams that ever waited, of the mean dominant share that each held while it
  waited: 1 when all are equal, 1/n when one had everything. Teams that ask for little keep it below 1.
- *Started past a more urgent run*: starts at moments when a run of a more urgent class went on waiting,
  parked or not fitting.

**Sources.** Helios (SenseTime, CC-BY-4.0, S-Lab-System-Group/HeliosData, SC '21) and Philly (Microsoft,
CC-BY-4.0, msr-fiddle/philly-traces, ATC '19), each the newest 15,000 jobs as published in
DIR-LAB/Gen-Parallel-Workloads; see [benchmarks/data](../benchmarks/data/README.md). A user is a team. What
the traces do not have was chosen: one run in ten is critical, two high, five default, two low, by a checksum
of the row; the timeout is the next of 10 min, 1, 2, 6, 12 h, 1, 3, 7, 30, 90 days; memory is not limited. The
pool is as large as makes the mean demand of each resource, from the first submission to the last, the load
that is named, and no smaller than the largest run. *Heavy* are the {HEAVY_TEAMS} teams with most work,
*others* the rest.
"""


def page() -> str:
    """Return the whole page; the plots are written on the way."""
    lines = [
        INTRODUCTION,
        *burst_section(),
        *trace_section("helios", "Helios"),
        *trace_section("philly", "Philly", PHILLY_SKIPPED),
    ]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Write the page and its plots."""
    (DOCS / "fairness.md").write_text(page())
    return 0


def _plot(name: str, title: str, groups: Mapping[str, array[int]]) -> None:
    folder = DOCS / "fairness"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.svg").write_text(plots.waits(title, groups))


def _prose(text: str) -> str:
    return textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False)


def _capacity(capacity: Bounds) -> str:
    words = [f"{capacity.slots:,} slots"] if capacity.slots else []
    words += [f"{capacity.cpu_millicores // 1000:,} cores"] if capacity.cpu_millicores else []
    words += [f"{capacity.gpu_count:,} GPUs"] if capacity.gpu_count else []
    return ", ".join(words)


if __name__ == "__main__":
    sys.exit(main())
