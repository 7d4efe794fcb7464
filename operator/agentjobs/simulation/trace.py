"""What a trace is: runs in the order of their submission, and perhaps the pool and the teams they were in.

Readers yield one run at a time and keep none, so the length of a trace does not matter.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TextIO

from agentjobs.apis.agentjob import Priority
from agentjobs.apis.agentpool import AgentPoolSpec
from agentjobs.apis.agentteam import AgentTeamSpec
from agentjobs.errors import TraceError
from agentjobs.scheduling.model import SECOND
from agentjobs.scheduling.resources import Amounts

MOST = 1_000_000_000  # of every number in a trace: 31 years, or a million cores
_LONGEST_TEXT = 317  # a namespace, a slash and a name
MEMORY_MB = 2048  # of a run whose trace names none: the default of an AgentJob

# Of ten runs of a trace without classes: one critical, two high, five default, two low.
_CLASSES = (Priority.CRITICAL, *[Priority.HIGH] * 2, *[Priority.DEFAULT] * 5, *[Priority.LOW] * 2)
# What people ask for: 10 minutes, 1, 2, 6 and 12 hours, 1, 3, 7, 30 and 90 days.
_TIMEOUTS = (600, 3600, 7200, 21_600, 43_200, 86_400, 259_200, 604_800, 2_592_000, 7_776_000)


class TraceRun(NamedTuple):
    """One submission.

    Attributes:
        submitted: microseconds, from an origin of the trace's own; never less than that of the run before.
        seconds: how long it runs if nothing stops it.
    """

    name: str
    team: str
    priority: Priority
    submitted: int
    seconds: int
    request: Amounts
    timeout_seconds: int


@dataclass(slots=True)
class Trace:
    """A trace that is being read.

    Attributes:
        pool: the pool's settings, where the trace has them.
        teams: by team id, those that have settings.
        runs: can be read once.
        note: what the trace does not say, and what the reader chose instead.
        others: by pool, runs of other pools, which are left out; counted as the runs are read.
    """

    runs: Iterator[TraceRun]
    pool_name: str = "default"
    pool: AgentPoolSpec | None = None
    teams: Mapping[str, AgentTeamSpec] = field(default_factory=dict)
    note: str = ""
    others: Counter[str] = field(default_factory=Counter)


def chosen_class(row: str) -> Priority:
    """Return the class of a run whose trace has none: by a checksum of its row, so always the same."""
    return _CLASSES[zlib.crc32(row.encode()) % len(_CLASSES)]


def chosen_timeout(seconds: int) -> int:
    """Return the timeout of a run whose trace has none: the next of the steps in which people ask."""
    return next((step for step in _TIMEOUTS if step >= seconds), seconds)


class Row:
    """The values of one line by column, and errors that name the place.

    Text and numbers are told apart: a table has digits in text, JSON has numbers.
    """

    __slots__ = ("file", "line", "values")

    def __init__(self, file: str, line: int, values: Mapping[str, object]) -> None:
        self.file = file
        self.line = line
        self.values = values

    def whole(self, column: str, *, least: int = 0, most: int = MOST, default: int | None = None) -> int:
        """Return a whole number; `default` where the column is absent, if there is one."""
        value = self.values.get(column)
        if value is None and default is not None:
            return default
        number = _whole(value)
        if number is None or not least <= number <= most:
            raise self.error(column, f"is not a whole number from {least:,} to {most:,}", "correct the line")
        return number

    def text(self, column: str, *, default: str | None = None) -> str:
        """Return a text that is not empty."""
        value = self.values.get(column)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not value or len(value) > _LONGEST_TEXT:
            raise self.error(column, f"is not a text of 1 to {_LONGEST_TEXT} characters", "correct the line")
        return value

    def priority(self, column: str) -> Priority:
        """Return a class by its name."""
        value = self.values.get(column)
        try:
            return Priority(value)  # type: ignore[arg-type] # anything else is refused
        except ValueError:
            names = ", ".join(priority.value for priority in Priority)
            raise self.error(column, "is no priority class", f"there are {names}") from None

    def error(self, column: str, rule: str, way_out: str) -> TraceError:
        """Return an error about one value of this line."""
        if column not in self.values:
            rule = "is missing"
        value = self.values.get(column)
        return TraceError(self.file, rule, way_out, line=self.line, column=f"column {column}", value=value)


def _whole(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and len(value) <= 20 and value.isascii() and value.lstrip("-").isdecimal():
        try:
            return int(value)
        except ValueError:  # two minus signs
            return None
    return None


def clean(lines: TextIO, file: str, most: int) -> Iterator[str]:
    """Yield the lines of a file that was opened with `surrogateescape`.

    Raises:
        TraceError: for bytes that are no text, or a line of more than `most` characters.
    """
    number = 0
    while text := lines.readline(most + 1):
        number += 1
        if len(text) > most:
            raise TraceError(file, f"is longer than {most:,} characters", "is it a trace?", line=number)
        if not _is_utf8(text):
            raise TraceError(file, "is not UTF-8", "convert the file", line=number)
        if "\0" in text:
            raise TraceError(file, "has a byte of value 0", "is it a trace?", line=number)
        yield text


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def in_order(runs: Iterator[tuple[Row, TraceRun]], column: str) -> Iterator[TraceRun]:
    """Yield the runs; TraceError where one was submitted before the one above it."""
    last = None
    for row, run in runs:
        if last is not None and run.submitted < last:
            rule = f"is {(last - run.submitted) / SECOND:,.0f} s before the line above"
            raise row.error(column, rule, "sort the runs by their submission")
        last = run.submitted
        yield run
