"""Readers of public traces: CSV with a header, and the Standard Workload Format (SWF).

CSV has one row a run: `interval` (seconds since the row before), `run_time` (seconds), a column that names
the team (`user`), and, where they are there, `u_id`, `priority`, `gpu_num`, `cpu_num` (cores) and
`wall_time` (the timeout, 0 for none). SWF has 18 numbers a line, described at
https://www.cs.huji.ac.il/labs/parallel/workload/swf.html; -1 stands for what is not known.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from agentjobs.errors import TraceError
from agentjobs.scheduling.model import SECOND
from agentjobs.scheduling.resources import Amounts
from agentjobs.simulation.trace import (
    MEMORY_MB,
    MOST,
    Row,
    Trace,
    TraceRun,
    chosen_class,
    chosen_timeout,
    clean,
    in_order,
)

if TYPE_CHECKING:
    from _csv import Reader

_MOST_COLUMNS = 200
_LINE_LIMIT = 100_000  # characters
_SWF_COLUMNS = (
    "job",
    "submit",
    "wait",
    "run_time",
    "processors",
    "cpu_time",
    "memory",
    "asked_processors",
    "asked_time",
    "asked_memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding",
    "think_time",
)
_CHOSEN = (
    "where the trace has no class, one run in ten is critical, two high, five default, two low, by a "
    "checksum of the row; without a timeout it is the next of 10 min, 1, 2, 6, 12 h, 1, 3, 7, 30, 90 days; "
    f"without a memory size it is {MEMORY_MB:,} MiB"
)
_UNKNOWN = "unknown"  # the team of the runs of which SWF says -1


def read_csv(lines: TextIO, file: str, team_column: str) -> Trace:
    """Return the trace of a CSV file; its header is read now, the rest as it is asked for.

    Raises:
        TraceError: now for a header that lacks columns, later for a row that cannot be read.
    """
    rows = csv.reader(clean(lines, file, _LINE_LIMIT))
    header = next(rows, [])
    if len(header) > _MOST_COLUMNS:
        raise TraceError(file, f"has {len(header):,} columns", "is it a CSV file?", line=1)
    for column, count in Counter(header).items():
        if count > 1:
            raise TraceError(file, f"is there {count} times", "keep one", line=1, column=f"column {column}")
    for column in (team_column, "interval", "run_time"):
        if column not in header:
            way_out = f"the header has {_listed(header)}"
            if column == team_column:
                way_out += "; name the column of the team with --team-column"
            raise TraceError(file, "is missing", way_out, line=1, column=f"column {column}")
    return Trace(in_order(_csv_runs(rows, file, header, team_column), "interval"), note=_CHOSEN)


def _listed(header: list[str]) -> str:
    names = ", ".join(name if name.isprintable() else "?" for name in header) or "nothing"
    return names if len(names) <= 300 else f"{names[:297]}..."


def _csv_runs(rows: Reader, file: str, header: list[str], team_column: str) -> Iterator[tuple[Row, TraceRun]]:
    now = 0
    following = rows.line_num + 1  # where the next row begins: one with line breaks in its texts has several
    try:
        for number, values in enumerate(rows, start=2):
            line, following = following, rows.line_num + 1
            if not values:
                continue
            if len(values) != len(header):
                rule = f"has {len(values)} columns, the header {len(header)}"
                raise TraceError(file, rule, "correct the line", line=line)
            row = Row(file, line, dict(zip(header, values, strict=True)))
            now += row.whole("interval") * SECOND
            yield row, _csv_run(row, number, now, team_column)
    except csv.Error as error:
        raise TraceError(file, f"is no CSV: {error}", "correct the line", line=following) from None


def _csv_run(row: Row, number: int, now: int, team_column: str) -> TraceRun:
    """Return a run; without a name it has the number of its row, whatever line breaks are in its texts."""
    name = row.text("u_id", default=str(number))
    seconds = row.whole("run_time")
    return TraceRun(
        name,
        row.text(team_column),
        row.priority("priority") if "priority" in row.values else chosen_class(name),
        now,
        seconds,
        Amounts(
            1,
            1000 * row.whole("cpu_num", most=MOST // 1000, default=0),
            MEMORY_MB,
            row.whole("gpu_num", default=0),
        ),
        row.whole("wall_time", default=0) or chosen_timeout(seconds),
    )


def read_swf(lines: TextIO, file: str, team_column: str) -> Trace:
    """Return the trace of a file in the Standard Workload Format; jobs that never ran are left out.

    Raises:
        TraceError: as it is read, for a line that cannot be.
    """
    if team_column not in ("user", "group", "executable", "queue", "partition"):
        way_out = "SWF has user, group, executable, queue and partition"
        raise TraceError(file, f"cannot name a team by {team_column!r}", way_out)
    note = f"where the {team_column} is -1, the team is {_UNKNOWN}; {_CHOSEN}"
    return Trace(in_order(_swf_runs(lines, file, team_column), "submit"), note=note)


def _swf_runs(lines: TextIO, file: str, team_column: str) -> Iterator[tuple[Row, TraceRun]]:
    for line, text in enumerate(clean(lines, file, _LINE_LIMIT), start=1):
        values = text.split()
        if not values or values[0].startswith(";"):
            continue
        if len(values) != len(_SWF_COLUMNS):
            rule = f"has {len(values)} columns, SWF has {len(_SWF_COLUMNS)}"
            raise TraceError(file, rule, "correct the line", line=line)
        row = Row(file, line, dict(zip(_SWF_COLUMNS, values, strict=True)))
        seconds = row.whole("run_time", least=-1)
        if seconds >= 0:
            yield row, _swf_run(row, seconds, team_column)


def _swf_run(row: Row, seconds: int, team_column: str) -> TraceRun:
    name = row.text("job")
    cores = max(row.whole("asked_processors", least=-1), row.whole("processors", least=-1), 1)
    memory = max(row.whole("asked_memory", least=-1), row.whole("memory", least=-1))  # KB a processor
    timeout = row.whole("asked_time", least=-1)
    team = row.text(team_column)
    return TraceRun(
        name,
        _UNKNOWN if team == "-1" else team,
        chosen_class(name),
        row.whole("submit") * SECOND,
        seconds,
        Amounts(1, 1000 * cores, MEMORY_MB if memory <= 0 else -(-memory * cores // 1024), 0),
        timeout if timeout > 0 else chosen_timeout(seconds),
    )
